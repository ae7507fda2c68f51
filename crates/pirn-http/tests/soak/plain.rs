//! Polite clients of HTTP/1.1, with and without TLS: some requests, one after the other.

use crate::Day;
use crate::server::{FILE, FILE_LENGTH, connect};
use crate::wire::{Line, Pattern};
use rustls::{ClientConnection, StreamOwned};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

pub(crate) fn plain(day: &mut Day) {
    let line = Line::new(day.world.server.connect());
    requests(day, line);
}

pub(crate) fn tls(day: &mut Day) {
    let line = secure(day);
    requests(day, line);
}

/// Returns a connection by TLS.
pub(crate) fn secure(day: &Day) -> Line<StreamOwned<ClientConnection, TcpStream>> {
    let server = &day.world.server;
    let name = "localhost".try_into().unwrap();
    let client = ClientConnection::new(Arc::new(server.trust.clone()), name).unwrap();
    Line::new(StreamOwned::new(client, connect(server.tls)))
}

fn requests<S: Read + Write>(day: &mut Day, mut line: Line<S>) {
    for _ in 0..=day.below(20) {
        match day.below(6) {
            0 => echo(day, &mut line),
            1 => pipeline(day, &mut line),
            2 => upload(day, &mut line),
            3 => chunked(day, &mut line),
            4 => download(day, &mut line),
            _ => range(day, &mut line),
        }
    }
}

fn echo(day: &mut Day, line: &mut Line<impl Read + Write>) {
    let number = day.number();
    line.send(format!("GET /echo/{number} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes());
    line.expect(200, number.to_string().as_bytes());
    day.checked("echo");
}

/// Several requests at once; one of them asks for nothing.
fn pipeline(day: &mut Day, line: &mut Line<impl Read + Write>) {
    let numbers = [day.number(), day.number(), day.number()];
    let mut all = String::new();
    for number in numbers {
        // Writing to a string does not fail.
        let _ = write!(all, "GET /echo/{number} HTTP/1.1\r\nhost: a\r\n\r\n");
        let _ = write!(
            all,
            "POST /none/{number} HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nGET /"
        );
    }
    line.send(all.as_bytes());
    for number in numbers {
        line.expect(200, number.to_string().as_bytes());
        line.expect(404, b"Not Found");
    }
    day.checked("pipeline");
}

fn upload(day: &mut Day, line: &mut Line<impl Read + Write>) {
    let (number, length) = (day.number(), day.length());
    let expect = ["", "expect: 100-continue\r\n"][day.below(2) as usize];
    let head = format!("POST /upload/{number} HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n");
    line.send(format!("{head}{expect}\r\n").as_bytes());
    line.send(&Pattern::bytes(number, length));
    line.expect(200, format!("{number} {length}").as_bytes());
    day.checked("upload");
}

fn chunked(day: &mut Day, line: &mut Line<impl Read + Write>) {
    let (number, length) = (day.number(), day.length());
    let head =
        format!("POST /upload/{number} HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n");
    line.send(format!("{head}\r\n").as_bytes());
    let body = Pattern::bytes(number, length);
    let mut rest = &body[..];
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.len().min(1 + day.below(30_000) as usize));
        line.send(format!("{:x}\r\n", chunk.len()).as_bytes());
        line.send(chunk);
        line.send(b"\r\n");
        rest = after;
    }
    line.send(b"0\r\n\r\n");
    line.expect(200, format!("{number} {length}").as_bytes());
    day.checked("chunked");
}

/// A body that is read by the server, or pushed by the handler, in chunks.
fn download(day: &mut Day, line: &mut Line<impl Read + Write>) {
    let (number, length) = (day.number(), day.length());
    let how = ["download", "pushed"][day.below(2) as usize];
    let target = format!("/{how}/{number}/{length}");
    line.send(format!("GET {target} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes());
    line.expect(200, &Pattern::bytes(number, length));
    day.checked("download");
}

/// A part of a file.
fn range(day: &mut Day, line: &mut Line<impl Read + Write>) {
    let start = day.below(FILE_LENGTH);
    let end = start + day.below(FILE_LENGTH - start);
    let range = format!("range: bytes={start}-{end}\r\n");
    line.send(format!("GET /files/file HTTP/1.1\r\nhost: a\r\n{range}\r\n").as_bytes());
    let mut body = vec![0; (end - start + 1) as usize];
    Pattern::at(FILE, start).read_exact(&mut body).unwrap();
    line.expect(206, &body);
    day.checked("range");
}
