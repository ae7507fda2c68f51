//! A connection's socket.

use rustix::io::Errno;
use rustix::net::{SendFlags, sendmsg};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// See the module's documentation. It is used through a shared reference.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Sends the bytes of both parts that the kernel takes without a wait. Returns their number.
    pub(crate) fn offer(&self, head: &[u8], body: &[u8]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let parts = [IoSlice::new(head), IoSlice::new(body)];
        match sendmsg(self, &parts, &mut Default::default(), flags) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            result => Ok(result?),
        }
    }

    /// Sends no more, or neither sends nor receives more.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        // Failure: the client is gone.
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown(how),
            Socket::Unix(stream) => stream.shutdown(how),
        };
    }

    /// Makes writes fail that wait for longer.
    pub(crate) fn limit_writes(&self, most: Duration) {
        // Failure: the client is gone.
        let _ = match self {
            Socket::Tcp(stream) => stream.set_write_timeout(Some(most)),
            Socket::Unix(stream) => stream.set_write_timeout(Some(most)),
        };
    }

    /// Has closing the socket reset the connection: what the client has not read yet is discarded,
    /// and does not stay in the kernel's memory until the client reads it.
    pub(crate) fn reset_when_closed(&self) {
        // Failure: the client is gone, or there is nothing to reset, as on a Unix socket.
        let _ = rustix::net::sockopt::set_socket_linger(self, Some(Duration::ZERO));
    }

    /// Returns the client's address, if it has one.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Socket::Tcp(stream) => stream.peer_addr().ok(),
            Socket::Unix(_) => None,
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&*stream).read(buffer),
            Socket::Unix(stream) => (&*stream).read(buffer),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&*stream).write(bytes),
            Socket::Unix(stream) => (&*stream).write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&*stream).write_vectored(slices),
            Socket::Unix(stream) => (&*stream).write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
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
