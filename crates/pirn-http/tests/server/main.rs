//! Servers, by connections inside the process and by sockets.

mod acceptor;
mod h1;
mod hangups;
mod http2;
mod outside;
mod refused;
mod room;
mod slow;
mod split;
mod threads;
mod timely;
mod tls;
mod upgrade;
mod websocket;

use pirn_http::{Body, Request, Response, Server, Status};
use std::io::{self, Write};

/// Returns a server with answers of each kind, which tests of all protocols ask for.
fn common() -> Server {
    Server::new()
        .get("/", || "Hello, World!")
        .get("/panic", || -> () { panic!("on purpose") })
        .get("/bomb", || -> () {
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
        .get("/short", || Body::from_sized_reader(&b"1234"[..], 10))
        .get("/empty", || Status::NO_CONTENT)
}
