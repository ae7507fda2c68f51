//! Clients that take their time: within the server's limits, and beyond them.

use crate::Day;
use crate::wire::{Line, Pattern};
use std::io::{Read, Write};

/// A slow client that is served nevertheless.
pub(crate) fn patient(day: &mut Day) {
    let mut line = Line::new(day.world.server.connect());
    match day.below(3) {
        0 => slow_head(day, &mut line),
        1 => slow_body(day, &mut line),
        _ => slow_reader(day, line),
    }
}

/// Sends bytes a few at a time.
fn trickle(day: &mut Day, line: &mut Line<impl Read + Write>, bytes: &[u8]) {
    let size = bytes.len() / 20 + 1;
    for piece in bytes.chunks(size) {
        line.send(piece);
        day.sleep(10);
    }
}

fn slow_head(day: &mut Day, line: &mut Line<impl Read + Write>) {
    let number = day.number();
    let head = format!("GET /echo/{number} HTTP/1.1\r\nhost: a\r\n\r\n");
    trickle(day, line, head.as_bytes());
    line.expect(200, number.to_string().as_bytes());
    day.checked("slow head");
}

fn slow_body(day: &mut Day, line: &mut Line<impl Read + Write>) {
    let (number, length) = (day.number(), day.length());
    let head = format!("POST /upload/{number} HTTP/1.1\r\nhost: a\r\n");
    line.send(format!("{head}content-length: {length}\r\n\r\n").as_bytes());
    trickle(day, line, &Pattern::bytes(number, length));
    line.expect(200, format!("{number} {length}").as_bytes());
    day.checked("slow body");
}

/// A reader of small pieces, with rests: the server waits for it, as sockets hold less than this.
fn slow_reader(day: &mut Day, mut line: Line<impl Read + Write>) {
    const LENGTH: u64 = 8 << 20;
    let number = day.number();
    let target = format!("/download/{number}/{LENGTH}");
    line.send(format!("GET {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes());
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        line.stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    let mut pattern = Pattern::new(number);
    let mut piece = vec![0; 256 << 10];
    loop {
        day.sleep(20);
        match line.stream.read(&mut piece).expect("a body") {
            0 => break,
            count => assert!(pattern.is_next(&piece[..count]), "not my answer"),
        }
    }
    assert_eq!(pattern.position(), LENGTH);
    day.checked("slow reader");
}

/// A client that stops in the middle of a head, and is told that this was too long.
pub(crate) fn stalled(day: &mut Day) {
    let mut line = Line::new(day.world.server.connect());
    line.send(b"GET /echo/1 HTTP/1.1\r\nhost");
    let rest = line.rest();
    let said = String::from_utf8_lossy(&rest);
    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
    day.checked("408");
}
