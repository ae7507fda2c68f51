//! Whole connections of HTTP/2, of which the preface and the client's settings are given: nothing
//! crashes or hangs, and the server says goodbye or just closes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pirn_http::{IntoResponse, Listener, Request, Response, Server};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::LazyLock;

/// The preface (RFC 9113, section 3.4) and empty settings.
const BEGINNING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// The server's socket. HTTP/2 is not spoken on connections inside the process.
static SOCKET: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("pirn-http-fuzz-{}", std::process::id()));
    let _ = std::fs::remove_file(&path); // Of an earlier process with this number.
    let echo = |request: &mut Request, _: &pirn_http::Handler| match request.bytes() {
        Ok(body) => Response::ok().body(body),
        Err(error) => error.into_response(),
    };
    let listener = Listener::unix(&path).expect("a socket");
    let server = Server::new().with(echo).listen(listener);
    server.start().expect("a server");
    path
});

fuzz_target!(|frames: &[u8]| {
    let mut client = UnixStream::connect(&*SOCKET).expect("a connection");
    let mut writer = client.try_clone().expect("a descriptor");
    let bytes = [BEGINNING, frames].concat();
    // The server may have closed the connection before it has read all.
    let writing = std::thread::spawn(move || {
        let _ = writer.write_all(&bytes);
        let _ = writer.shutdown(Shutdown::Write);
    });
    let mut all = Vec::new();
    let _ = client.read_to_end(&mut all);
    writing.join().expect("it does not panic");
    // Settings come first (RFC 9113, section 3.4).
    assert_eq!(all.get(3), Some(&4), "{all:?}");
});
