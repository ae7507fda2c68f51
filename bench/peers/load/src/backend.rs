//! The backend of the gateway workload: an HTTP server that waits and answers, and does nothing
//! else.

use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::{limits, millis, print_line};

/// The kernel allows no more than net.core.somaxconn, whatever is asked for.
const BACKLOG: u32 = 65_535;

/// A request should not be longer.
const LONGEST_REQUEST: usize = 16 * 1024;

const ANSWER: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";

/// Says that the connection is closed, without which wrk takes that for an error.
const LAST_ANSWER: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\n\
                           Content-Length: 13\r\n\r\nHello, World!";

/// Answers any GET after a delay, until standard input ends.
#[derive(Args)]
pub struct Backend {
    /// How long a request takes
    #[arg(long = "delay-ms", value_parser = millis)]
    delay: Duration,
}

/// Serves until standard input ends.
pub async fn run(args: &Backend) -> Result<()> {
    limits::raise()?;
    let socket = TcpSocket::new_v4().context("cannot make a socket")?;
    socket
        .bind((Ipv4Addr::LOCALHOST, 0).into())
        .context("cannot bind")?;
    let listener = socket.listen(BACKLOG).context("cannot listen")?;
    let port = listener
        .local_addr()
        .context("cannot tell the port")?
        .port();
    print_line(&json!({ "listening": port }))?;
    tokio::select! {
        _ = end_of_input() => Ok(()),
        failed = accept(&listener, args.delay) => failed,
    }
}

/// Resolves when standard input ends, or cannot be read.
fn end_of_input() -> oneshot::Receiver<()> {
    let (ended, end) = oneshot::channel();
    thread::spawn(move || {
        // Whatever is sent means nothing, and an error is an end as well.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = ended.send(());
    });
    end
}

/// Returns only if it cannot accept any more.
async fn accept(listener: &TcpListener, delay: Duration) -> Result<()> {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(converse(stream, delay))),
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => {
                let limit = limits::raise()?;
                return Err(error).with_context(|| {
                    format!("cannot accept (`ulimit -n` allows {limit} file descriptors)")
                });
            }
        }
    }
}

/// Answers requests until the client has no more, asks to close, or sends what is no GET. A
/// connection that breaks is the client's to report.
async fn converse(mut stream: TcpStream, delay: Duration) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(512);
    loop {
        let request = loop {
            match Request::parse(&buffer)? {
                Some(request) => break request,
                None if buffer.len() >= LONGEST_REQUEST => {
                    return Err(ErrorKind::InvalidData.into());
                }
                None if stream.read_buf(&mut buffer).await? == 0 => return Ok(()),
                None => {}
            }
        };
        buffer.drain(..request.length);
        if !delay.is_zero() {
            sleep(delay).await;
        }
        if request.last {
            return stream.write_all(LAST_ANSWER.as_bytes()).await;
        }
        stream.write_all(ANSWER.as_bytes()).await?;
    }
}

/// A request without a body.
#[derive(Debug, PartialEq)]
struct Request {
    length: usize,
    /// The connection is to be closed after the answer.
    last: bool,
}

impl Request {
    /// None if it is not all there yet.
    fn parse(bytes: &[u8]) -> io::Result<Option<Request>> {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(error) => return Err(io::Error::new(ErrorKind::InvalidData, error)),
        };
        if request.method != Some("GET") {
            return Err(ErrorKind::Unsupported.into());
        }
        let closes = |header: &httparse::Header<'_>| {
            header.name.eq_ignore_ascii_case("connection")
                && header.value.trim_ascii().eq_ignore_ascii_case(b"close")
        };
        let last = request.version == Some(0) || request.headers.iter().any(closes);
        Ok(Some(Request { length, last }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_ends_with_an_empty_line() {
        let text = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
        for length in 0..text.len() {
            assert_eq!(Request::parse(&text.as_bytes()[..length]).unwrap(), None);
        }
        let two = [text, text].concat();
        let first = Request::parse(two.as_bytes()).unwrap();
        assert_eq!(
            first,
            Some(Request {
                length: text.len(),
                last: false
            })
        );
    }

    #[test]
    fn a_client_may_ask_to_close() {
        for last in [
            "GET / HTTP/1.1\r\nconnection: Close\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
        ] {
            assert!(
                Request::parse(last.as_bytes()).unwrap().unwrap().last,
                "{last}"
            );
        }
    }

    #[test]
    fn what_is_no_get_is_refused() {
        for wrong in ["POST / HTTP/1.1\r\n\r\n", "\u{1}\r\n\r\n"] {
            assert!(Request::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
