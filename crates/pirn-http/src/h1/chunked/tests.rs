//! Chunks, read from a socket, in pieces of every length.

use super::*;
use crate::socket::Socket;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// Reads a body that comes in pieces of `piece` bytes, into buffers of `room` bytes.
fn read(bytes: &[u8], piece: usize, room: usize) -> io::Result<Vec<u8>> {
    let (mut client, server) = UnixStream::pair()?;
    let stream = Stream::Plain(Socket::Unix(server));
    std::thread::scope(move |scope| {
        let stream = stream; // Dropped before the writer is waited for, which then ends.
        scope.spawn(move || {
            for piece in bytes.chunks(piece) {
                let _ = client.write_all(piece); // Failure: the reader has seen enough.
            }
        });
        let (mut input, mut chunked) = (Input::default(), Chunked::new());
        let (mut all, mut buffer) = (Vec::new(), vec![0; room]);
        loop {
            match chunked.read(&mut input, &stream, &mut buffer)? {
                0 => return Ok(all),
                count => all.extend_from_slice(&buffer[..count]),
            }
        }
    })
}

#[test]
fn a_body_is_the_same_however_it_comes() {
    let body = b"5\r\nhello\r\n1;name=value\r\n,\r\nA\r\n0123456789\r\n000\r\nx: y\r\n\r\n";
    for piece in 1..=body.len() {
        for room in [1, 3, 100] {
            assert_eq!(
                read(body, piece, room).unwrap(),
                b"hello,0123456789",
                "{piece} {room}"
            );
        }
    }
}

#[test]
fn a_body_that_ends_early_is_an_error() {
    let body = b"5\r\nhello\r\n0\r\nx: y\r\n\r\n";
    for length in 0..body.len() {
        let error = read(&body[..length], 100, 100).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length}");
    }
}

#[test]
fn lines_are_not_endless() {
    let extension = format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(MAX_LINES));
    assert!(read(extension.as_bytes(), 1000, 10).is_err());
    let many = format!("1;{}\r\nx\r\n", "e".repeat(100)).repeat(MAX_LINES / 100);
    assert!(read(many.as_bytes(), 1000, 10).is_err());
    let trailers = format!("0\r\n{}\r\n", "x: y\r\n".repeat(MAX_LINES));
    assert!(read(trailers.as_bytes(), 1000, 10).is_err());
}
