//! Clients that hang up in the middle, and clients that send what a server must refuse.

use crate::Day;
use crate::plain;
use crate::server::connect;
use crate::wire::{Line, Pattern};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Requests about which a server and a proxy before it may disagree, or that are malformed
/// otherwise. A request follows each, which the server must not answer.
const NONSENSE: [&str; 14] = [
    "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n12345",
    "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +5\r\n\r\n12345",
    "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST /upload/1 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
    "POST /upload/1 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1;\na\r\na\r\n0\r\n\r\n",
    "GET /echo/1 HTTP/1.1\r\nhost: a\r\nx : y\r\n\r\n",
    "GET /echo/1 HTTP/1.1\r\nhost: a\r\nx: y\r\n folded\r\n\r\n",
    "GET /echo/1 HTTP/1.1\nhost: a\n\n",
    "GET /echo/1 HTTP/1.1\r\n\r\n",
    "GET /echo/1 HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    "\x16\x03\x01\x02\r\n\r\n",
];

/// One line of nonsense: one answer, which refuses it, and the end.
pub(crate) fn nonsense(day: &mut Day) {
    let index = day.below(NONSENSE.len() as u64) as usize;
    let number = day.number();
    let mut line = Line::new(day.world.server.connect());
    let next = format!("GET /echo/{number} HTTP/1.1\r\nhost: a\r\n\r\n");
    line.send(format!("{}{next}", NONSENSE[index]).as_bytes());
    let rest = line.rest();
    let said = String::from_utf8_lossy(&rest);
    let refused = ["400", "501", "505"].iter();
    let mut refused = refused.map(|status| format!("HTTP/1.1 {status} "));
    assert!(
        refused.any(|start| said.starts_with(&start)),
        "{index}: {said}"
    );
    assert_eq!(said.matches("HTTP/1.1").count(), 1, "{index}: {said}");
    day.checked("refused");
}

/// A client that leaves in the middle of something.
pub(crate) fn client(day: &mut Day) {
    let number = day.number();
    match day.below(6) {
        0 => drop(day.world.server.connect()),
        1 => waiting(day, number),
        2 => uploading(day, number),
        3 => downloading(day, number),
        4 => garbling(day, number),
        _ => shaking_hands(day),
    }
    day.checked("hung up");
}

fn begin(day: &Day, request: &str) -> TcpStream {
    let mut stream = day.world.server.connect();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Its handler waits for what never comes; it is interrupted.
fn waiting(day: &mut Day, number: u64) {
    let stream = begin(
        day,
        &format!("GET /wait/{number} HTTP/1.1\r\nhost: a\r\n\r\n"),
    );
    day.sleep(20);
    drop(stream);
}

fn uploading(day: &mut Day, number: u64) {
    let head =
        format!("POST /upload/{number} HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n");
    let mut stream = begin(day, &head);
    stream.write_all(&Pattern::bytes(number, 50_000)).unwrap();
    day.sleep(5);
    leave(day, &stream);
}

fn downloading(day: &mut Day, number: u64) {
    let how = ["download", "pushed"][day.below(2) as usize];
    let target = format!("/{how}/{number}/9000000");
    let mut stream = begin(day, &format!("GET {target} HTTP/1.1\r\nhost: a\r\n\r\n"));
    stream.read_exact(&mut [0; 1000]).unwrap();
    leave(day, &stream);
}

fn shaking_hands(day: &mut Day) {
    let mut stream = connect(day.world.server.tls);
    // The beginning of a handshake of TLS without the rest, or bytes that are not a handshake.
    let starts: [&[u8]; 2] = [&[0x16, 3, 1, 2, 0, 1], b"GET / HTTP/1.1\r\n\r\n"];
    stream.write_all(starts[day.below(2) as usize]).unwrap();
    day.sleep(5);
    leave(day, &stream);
}

/// A client of TLS that sends bytes that are not TLS in the middle of a request's body.
fn garbling(day: &mut Day, number: u64) {
    let mut line = plain::secure(day);
    let head = format!("POST /upload/{number} HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n");
    line.send(head.as_bytes());
    line.stream.sock.write_all(&[0; 100]).unwrap();
    assert!(line.answer().is_err(), "an answer in spite of garbage");
}

/// Makes the close reset the connection, now and then.
fn leave(day: &mut Day, stream: &TcpStream) {
    if day.below(2) == 0 {
        rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
    }
}
