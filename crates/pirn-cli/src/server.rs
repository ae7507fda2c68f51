//! The server of the demo, which is a few lines on `pirn-http`.
//!
//! `GET /` waits for the configured delay, as for a database, and answers `Hello, World!`. `GET
//! /health` answers at once.

use std::thread;
use std::time::Duration;

use pirn_http::{Limits, Request, Server, Timeouts};

use crate::threads::Threads;

/// The body of each answer.
pub const HELLO: &str = "Hello, World!";

/// How long a user may be idle: all wait until the last of them is connected.
const IDLE: Duration = Duration::from_secs(3600);

/// Returns a server whose connections have threads of this kind, and whose handler waits for
/// `delay`.
pub fn new(threads: impl Threads, delay: Duration) -> Server {
    let server = Server::new()
        .get("/", move |_: &mut Request| {
            thread::sleep(delay);
            HELLO
        })
        .get("/health", |_: &mut Request| HELLO)
        .timeouts(Timeouts::default().idle(IDLE))
        .limits(Limits::default().connections(u32::MAX as usize)); // `pirn demo` counts itself.
    threads.serve(server)
}
