//! Servers, by connections inside the process and by sockets.

mod acceptor;
mod h1;
mod hangups;
#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "http2")]
mod refused;
mod room;
mod slow;
mod split;
mod threads;
#[cfg(all(
    feature = "brotli",
    feature = "gzip",
    feature = "http2",
    feature = "zstd"
))]
mod timely;
#[cfg(feature = "tls")]
mod tls;
mod upgrade;
#[cfg(feature = "websocket")]
mod websocket;

use pirn_http::{Body, Request, Response, Server, Status};
use std::io::{self, Write};

/// Returns a server with answers of each kind, which tests of all protocols ask for.
fn common() -> Server {
    Server::new()
        .get("/", |_: &mut Request| "Hello, World!")
        .get("/panic", |_: &mut Request| -> () { panic!("on purpose") })
        .get("/bomb", |_: &mut Request| -> () {
            struct Bomb;
            impl Drop for Bomb {
                fn drop(&mut self) {
                    panic!("when it is dropped");
                }
            }
            std::panic::panic_any(Bomb)
        })
        .get("/stream", |request: &mut Request| -> io::Result<()> {
            let mut body = request.respond(Response::ok())?;
            for piece in ["a", "", "bc"] {
                body.write_all(piece.as_bytes())?;
                body.flush()?;
            }
            Ok(())
        })
        .get("/half", |request: &mut Request| -> io::Result<()> {
            let mut body = request.respond(Response::ok())?;
            body.write_all(b"half")?;
            Err(io::Error::other("on purpose"))
        })
        .get("/short", |_: &mut Request| {
            Body::from_sized_reader(&b"1234"[..], 10)
        })
        .get("/empty", |_: &mut Request| Status::NO_CONTENT)
}
