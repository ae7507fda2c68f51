//! What the tests of the command share.

#![allow(dead_code, unused_imports, reason = "each test uses some of it")]

use std::process::Command;

pub use pirn_testing::{Folder, Running, Server, watch};

/// The command, which is also a program with virtual threads: `pirn demo server`.
pub const PIRN: &str = env!("CARGO_BIN_EXE_pirn");

/// Returns the number of `pirn demo server`'s own threads. One notices clients that hang up, one
/// looks after time limits every 100 ms, and one per 8 processors accepts connections.
pub fn own() -> usize {
    2 + std::thread::available_parallelism()
        .unwrap()
        .get()
        .div_ceil(8)
}

/// Starts `pirn demo server`.
pub fn demo() -> Server {
    demo_by(&mut Command::new(PIRN))
}

/// Starts one with these variables in its environment.
pub fn demo_in(variables: &[(&str, &str)]) -> Server {
    demo_by(Command::new(PIRN).envs(variables.iter().copied()))
}

/// Starts one by a command that takes its arguments.
pub fn demo_by(command: &mut Command) -> Server {
    demo_with(command, &[])
}

/// The same with more arguments.
pub fn demo_with(command: &mut Command, more: &[&str]) -> Server {
    Server::start(command.args(["demo", "server", "127.0.0.1:0"]).args(more))
}

/// Makes a request that is answered.
pub fn greet(server: &Server) {
    let response = server.ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(response.ends_with("\r\n\r\nHello, World!"), "{response}");
}
