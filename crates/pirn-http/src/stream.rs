//! The ways to a client.

use rustix::io::Errno;
use rustix::net::{SendFlags, sendmsg};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

#[cfg(feature = "tls")]
use crate::tls::{Farewell, TlsStream};

/// A connection's two streams of bytes. Both are used through a shared reference: a handler may
/// read and write at the same time, from two threads.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
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
            Stream::Tcp(stream) => (&*stream).read(buffer),
            Stream::Unix(stream) => (&*stream).read(buffer),
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
        let socket = match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            #[cfg(feature = "tls")]
            Stream::Tls(_) => return Ok(0),
            #[cfg(feature = "http2")]
            Stream::Tunnel(_) => return Ok(0),
        };
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let parts = [IoSlice::new(head), IoSlice::new(body)];
        match sendmsg(socket, &parts, &mut Default::default(), flags) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            result => Ok(result?),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&*stream).write(bytes),
            Stream::Unix(stream) => (&*stream).write(bytes),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.send(bytes, &[]).map(|()| bytes.len()),
            #[cfg(feature = "http2")]
            Stream::Tunnel(tunnel) => tunnel.write(bytes),
        }
    }

    fn write_both(&self, head: &[u8], body: &[u8]) -> io::Result<usize> {
        let slices = [IoSlice::new(head), IoSlice::new(body)];
        match self {
            Stream::Tcp(stream) => (&*stream).write_vectored(&slices),
            Stream::Unix(stream) => (&*stream).write_vectored(&slices),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.send(head, body).map(|()| head.len() + body.len()),
            #[cfg(feature = "http2")]
            Stream::Tunnel(tunnel) => tunnel.write(head),
        }
    }

    /// Sends no more, or neither sends nor receives more.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        // Failure: the client is gone.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(how),
            Stream::Unix(stream) => stream.shutdown(how),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => {
                stream.shutdown(how);
                Ok(())
            }
            #[cfg(feature = "http2")]
            Stream::Tunnel(tunnel) => {
                tunnel.shutdown(how);
                Ok(())
            }
        };
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
        // Failure: the client is gone.
        let _ = match self {
            Stream::Tcp(stream) => stream.set_write_timeout(Some(most)),
            Stream::Unix(stream) => stream.set_write_timeout(Some(most)),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => {
                stream.socket().limit_writes(most);
                Ok(())
            }
            #[cfg(feature = "http2")]
            Stream::Tunnel(_) => Ok(()),
        };
    }

    /// Ends both directions at once, in the middle of what is being written.
    pub(crate) fn abort(&self) {
        self.reset_when_closed();
        match self {
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.socket().shutdown(Shutdown::Both),
            stream => stream.shutdown(Shutdown::Both),
        }
    }

    /// Has closing the stream reset it: what the client has not read yet is discarded, and does not
    /// stay in the kernel's memory until the client reads it.
    pub(crate) fn reset_when_closed(&self) {
        if let Some(socket) = self.descriptor() {
            // Failure: the client is gone, or there is nothing to reset, as on a Unix socket.
            let _ = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
        }
    }

    /// Returns the client's address, if it has one.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.socket().peer(),
            Stream::Unix(_) => None,
            #[cfg(feature = "http2")]
            Stream::Tunnel(tunnel) => tunnel.peer(),
        }
    }

    /// Returns the descriptor of the socket, if there is one.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Stream::Tcp(stream) => Some(stream.as_fd()),
            Stream::Unix(stream) => Some(stream.as_fd()),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.socket().descriptor(),
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
            Stream::Tcp(_) | Stream::Unix(_) => false,
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

/// Calls `call` until no signal's handler has interrupted it.
#[inline]
pub(crate) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
