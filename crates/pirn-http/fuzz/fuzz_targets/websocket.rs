//! Frames of WebSockets, after a handshake: nothing crashes or hangs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pirn_http::{Client, Server, WebSocket};
use std::io;
use std::sync::LazyLock;

const HANDSHAKE: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

static CLIENT: LazyLock<Client> = LazyLock::new(|| {
    let echo = |mut socket: WebSocket| -> io::Result<()> {
        while let Some(message) = socket.read()? {
            socket.send(message)?;
        }
        Ok(())
    };
    Server::new().websocket("/", echo).client()
});

fuzz_target!(|frames: &[u8]| {
    let answer = CLIENT.send(&[HANDSHAKE, frames].concat());
    assert!(answer.starts_with(b"HTTP/1.1 101 "));
});
