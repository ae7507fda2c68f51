//! A client's connection and the one kind of request it makes.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout_at};

/// Connections from one source address. An address has about 28,000 ports to connect to a server
/// from, and the fewer of them are taken, the faster the kernel finds a free one.
const PER_SOURCE: u32 = 8192;

/// The first source address.
const FIRST_SOURCE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// As much as any header section and body should take: the longest body is one of 1 MiB.
const LONGEST_ANSWER: usize = 2 << 20;

/// As much as they usually take, so that the buffer need not grow.
const USUAL_ANSWER: usize = 512;

/// What an echo sends and gets back, in bytes.
const ECHOED: usize = 64;

/// A connection to the server, with TLS or without.
pub struct Connection<S = TcpStream> {
    stream: S,
    buffer: Vec<u8>,
}

/// What the server answered.
pub struct Answer<'a> {
    /// The status.
    pub status: u16,
    /// Whether the server says that it will close the connection.
    pub closes: bool,
    /// The body.
    pub body: &'a [u8],
}

/// `GET /`, with a further header line (ended by `\r\n`) or none.
pub fn request(port: u16, header: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{header}\r\n")
}

/// A socket for the client of this number. What fails here fails on the client's side, and must not
/// be counted against the server.
pub fn socket(number: u32) -> Result<TcpSocket> {
    let source = Ipv4Addr::from_bits(FIRST_SOURCE.to_bits() + number / PER_SOURCE);
    let socket = TcpSocket::new_v4().context("cannot make a socket")?;
    // Else the port would be chosen now, without regard to where the connection goes, and one
    // that lingers in TIME_WAIT from an earlier connection could not be taken again.
    setsockopt(&socket, IpBindAddressNoPort, &true).context("cannot set a socket option")?;
    socket
        .bind(SocketAddrV4::new(source, 0).into())
        .context("cannot bind")?;
    Ok(socket)
}

/// The outcome of something that began then and must not take longer than `limit`.
pub async fn timely<T>(
    began: Instant,
    limit: Duration,
    doing: impl Future<Output = Result<T>>,
) -> Result<T> {
    match timeout_at(began + limit, doing).await {
        Ok(done) => done,
        Err(_) => bail!("no answer within {limit:?}"),
    }
}

/// Connects a socket to 127.0.0.1.
pub async fn connect(socket: TcpSocket, port: u16) -> Result<TcpStream> {
    let server = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    socket
        .connect(server.into())
        .await
        .context("cannot connect")
}

impl Connection {
    /// Connects the socket to 127.0.0.1.
    pub async fn open(socket: TcpSocket, port: u16) -> Result<Connection> {
        Ok(Connection::over(connect(socket, port).await?))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// A connection over this stream.
    pub fn over(stream: S) -> Connection<S> {
        Connection {
            stream,
            buffer: Vec::with_capacity(USUAL_ANSWER),
        }
    }

    /// Sends the request and waits for the answer.
    pub async fn get(&mut self, request: &str) -> Result<Answer<'_>> {
        self.stream
            .write_all(request.as_bytes())
            .await
            .context("cannot send")?;
        self.stream.flush().await.context("cannot send")?; // TLS may have kept some of it
        self.buffer.clear();
        let head = loop {
            let read = self
                .stream
                .read_buf(&mut self.buffer)
                .await
                .context("cannot read")?;
            let length = self.buffer.len();
            ensure!(
                read > 0,
                "the server closed the connection after {length} bytes of an answer"
            );
            match Head::parse(&self.buffer)? {
                Some(head) if length >= head.end => break head,
                _ => ensure!(
                    length < LONGEST_ANSWER,
                    "an answer of more than {length} bytes"
                ),
            }
        };
        let extra = self.buffer.len() - head.end;
        ensure!(extra == 0, "{extra} bytes after the end of an answer");
        Ok(Answer {
            status: head.status,
            closes: head.closes,
            body: &self.buffer[head.body..head.end],
        })
    }

    /// Sends the request, and waits for the answer to be this body.
    pub async fn expect(&mut self, request: &str, body: &str) -> Result<()> {
        let answer = self.get(request).await?;
        let text = String::from_utf8_lossy(answer.body);
        ensure!(
            answer.status == 200,
            "status {}: {text:.200}",
            answer.status
        );
        ensure!(
            answer.body == body.as_bytes(),
            "the body is {text:.200?} and not {body:?}"
        );
        Ok(())
    }

    /// Sends 64 bytes, which begin with this number, and waits for the server to send them back.
    pub async fn echo(&mut self, number: u32) -> Result<()> {
        let mut sent = [b'e'; ECHOED];
        sent[..4].copy_from_slice(&number.to_be_bytes());
        let mut got = [0; ECHOED];
        self.stream.write_all(&sent).await.context("cannot send")?;
        self.stream
            .read_exact(&mut got)
            .await
            .context("cannot read")?;
        ensure!(got == sent, "other bytes came back");
        Ok(())
    }

    /// Waits for the server to close the connection.
    pub async fn closed(&mut self) -> Result<()> {
        let read = self.stream.read(&mut [0; 1]).await.context("cannot read")?;
        ensure!(read == 0, "bytes after the end of an answer");
        Ok(())
    }
}

/// The header section of an answer, and where the body is.
#[derive(Debug, PartialEq)]
struct Head {
    status: u16,
    /// Whether the server says that it will close the connection.
    closes: bool,
    body: usize,
    end: usize,
}

impl Head {
    /// None if it is not all there yet.
    fn parse(bytes: &[u8]) -> Result<Option<Head>> {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut answer = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(body) = answer.parse(bytes).context("not an HTTP answer")?
        else {
            return Ok(None);
        };
        let value = |name: &str| {
            let mut headers = answer.headers.iter();
            headers.find(|header| header.name.eq_ignore_ascii_case(name))
        };
        let length = value("content-length").context("an answer without Content-Length")?;
        let closes = value("connection").is_some_and(|h| h.value.eq_ignore_ascii_case(b"close"));
        let length: usize = std::str::from_utf8(length.value)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .context("a Content-Length that is no number")?;
        let status = answer.code.context("an answer without status")?;
        Ok(Some(Head {
            status,
            closes,
            body,
            end: body.saturating_add(length),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "HTTP/1.1 200 OK\r\nserver: x\r\ncontent-length: 2\r\n\r\nhi";

    #[test]
    fn a_head_is_there_once_all_its_bytes_are() {
        let body = ANSWER.len() - 2;
        for length in 0..body {
            assert_eq!(Head::parse(&ANSWER.as_bytes()[..length]).unwrap(), None);
        }
        for length in body..=ANSWER.len() {
            let head = Head::parse(&ANSWER.as_bytes()[..length]).unwrap();
            assert_eq!(
                head,
                Some(Head {
                    closes: false,
                    status: 200,
                    body,
                    end: body + 2
                })
            );
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for wrong in [
            "SMTP ready\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nhi",
        ] {
            assert!(Head::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
