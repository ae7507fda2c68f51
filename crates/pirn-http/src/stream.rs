//! The ways to a client.

use crate::socket::{Socket, retry};
#[cfg(feature = "tls")]
use crate::tls::{Farewell, TlsStream};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

/// A connection's two streams of bytes. Both are used through a shared reference: a handler may
/// read and write at the same time, from two threads.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(Socket),
    #[cfg(feature = "tls")]
    Tls(Box<Farewell>),
    #[cfg(feature = "http2")]
    Tunnel(std::sync::Arc<dyn Tunnel>),
}

/// One of the streams of a connection of HTTP/2, which carries another protocol.
#[cfg(feature = "http2")]
pub(crate) trait Tunnel: std::fmt::Debug + Send + Sync {
    /// Reads bytes into `buffer`; zero: the client sends no more.
    ///
    /// # Errors
    /// If the stream is broken, or the thread is interrupted.
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;
    /// Writes as many of the bytes as the client's window takes, for which it has as long as a
    /// connection may be idle. Returns how many.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Sends no more, or neither sends nor receives more.
    fn shutdown(&self, how: Shutdown);
    /// Returns the client's address, if it has one.
    fn peer(&self) -> Option<SocketAddr>;
    /// Returns whether TLS encrypts the bytes on their way.
    fn is_secure(&self) -> bool;
}

impl Stream {
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => (&*socket).read(buffer),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.read(buffer),
            #[cfg(feature = "http2")]
            Stream::Tunnel(tunnel) => tunnel.read(buffer),
        }
    }

    /// Writes all of both parts, in one call if the kernel takes them.
    pub(crate) fn write_all(&self, head: &[u8], body: &[u8]) -> io::Result<()> {
        let (mut head, mut body) = (head, body);
        while !head.is_empty() || !body.is_empty() {
            let count = retry(|| match (head, body) {
                (all, []) | ([], all) => self.write(all),
                _ => self.write_both(head, body),
            })?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            let of_head = count.min(head.len());
            head = &head[of_head..];
            body = &body[count - of_head..];
        }
        Ok(())
    }

    /// Writes the bytes of both parts that the kernel takes without a wait. Returns their number;
    /// zero for a stream that is not a plain socket.
    pub(crate) fn offer(&self, head: &[u8], body: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.offer(head, body),
            #[cfg(feature = "tls")]
            Stream::Tls(_) => Ok(0),
            #[cfg(feature = "http2")]
            Stream::Tunnel(_) => Ok(0),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => (&*socket).write(bytes),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.send(bytes, &[]).map(|()| bytes.len()),
            #[cfg(feature = "http2")]
            Stream::Tunnel(tunnel) => tunnel.write(bytes),
        }
    }

    fn write_both(&self, head: &[u8], body: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => {
                (&*socket).write_vectored(&[IoSlice::new(head), IoSlice::new(body)])
            }
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.send(head, body).map(|()| head.len() + body.len()),
            #[cfg(feature = "http2")]
            Stream::Tunnel(tunnel) => tunnel.write(head),
        }
    }

    /// Sends no more, or neither sends nor receives more.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        match self {
            Stream::Plain(socket) => socket.shutdown(how),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.shutdown(how),
            #[cfg(feature = "http2")]
            Stream::Tunnel(tunnel) => tunnel.shutdown(how),
        }
    }

    /// Ends the server's direction, and reads until the client ends its own, or has sent 1 MiB.
    /// Closing a socket with unread bytes would reset it, and the client might never see the last
    /// bytes of the answer (RFC 9112, section 9.6). The caller limits the time.
    pub(crate) fn linger(&self) {
        self.shutdown(Shutdown::Write);
        let mut buffer = [0; 1024];
        let mut left: usize = 1 << 20;
        while left > 0 {
            match self.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => left = left.saturating_sub(count),
            }
        }
    }

    /// Makes writes fail that wait for longer. (A [tunnel](Stream::Tunnel) limits its own.)
    pub(crate) fn limit_writes(&self, most: Duration) {
        if let Some(socket) = self.socket() {
            socket.limit_writes(most);
        }
    }

    /// Ends both directions at once, in the middle of what is being written.
    pub(crate) fn abort(&self) {
        match self.socket() {
            Some(socket) => {
                socket.reset_when_closed();
                socket.shutdown(Shutdown::Both);
            }
            None => self.shutdown(Shutdown::Both),
        }
    }

    /// Has closing the stream reset it: see [`Socket::reset_when_closed`].
    pub(crate) fn reset_when_closed(&self) {
        if let Some(socket) = self.socket() {
            socket.reset_when_closed();
        }
    }

    /// Returns the client's address, if it has one.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match self {
            #[cfg(feature = "http2")]
            Stream::Tunnel(tunnel) => tunnel.peer(),
            _ => self.socket()?.peer(),
        }
    }

    /// Returns the socket, if the connection has one of its own.
    pub(crate) fn socket(&self) -> Option<&Socket> {
        match self {
            Stream::Plain(socket) => Some(socket),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => Some(stream.socket()),
            #[cfg(feature = "http2")]
            Stream::Tunnel(_) => None,
        }
    }

    /// Returns what is known by TLS.
    #[cfg(feature = "tls")]
    pub(crate) fn tls(&self) -> Option<&TlsStream> {
        match self {
            Stream::Tls(stream) => Some(stream),
            _ => None,
        }
    }

    /// Returns whether TLS encrypts the bytes on their way.
    pub(crate) fn is_secure(&self) -> bool {
        match self {
            #[cfg(feature = "tls")]
            Stream::Tls(_) => true,
            #[cfg(feature = "http2")]
            Stream::Tunnel(tunnel) => tunnel.is_secure(),
            Stream::Plain(_) => false,
        }
    }
}

/// Returns the beginning of a buffer, of up to `most` bytes.
pub(crate) fn at_most(buffer: &mut [u8], most: u64) -> &mut [u8] {
    let room = buffer
        .len()
        .min(usize::try_from(most).unwrap_or(usize::MAX));
    &mut buffer[..room]
}
