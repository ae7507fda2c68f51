//! A connection that has left HTTP for another protocol.

use crate::input::Input;
use crate::limits::watch::{Seat, Waiting};
use crate::poison::locked;
use crate::stream::Stream;
use pirn::thread::Panic;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex};

/// Gets the connection once the server has sent `101 Switching Protocols`.
pub(crate) type Upgrade = Box<dyn FnOnce(Upgraded) + Send>;

/// A connection that speaks another protocol than HTTP: see [`Response::upgrade`] and
/// [`tcp_acceptor`](crate::tcp_acceptor).
///
/// It is a [`Read`] and a [`Write`], also by a shared reference: clones of it may read and write at
/// the same time, from several threads. What the client has sent after its request comes first.
///
/// While the thread that the connection began with waits in `read`, shutting the server down
/// interrupts it. A client that takes nothing of what is written for as long as a connection may be
/// [idle](crate::Timeouts::idle) is cut off, whichever thread writes. After a write that has failed
/// the connection is closed: some of it may have been sent.
///
/// [`Response::upgrade`]: crate::Response::upgrade
#[derive(Clone)]
pub struct Upgraded(Arc<Inner>);

struct Inner {
    stream: Stream,
    /// The bytes that came behind the request's head.
    early: Mutex<Input>,
    waiting: Waiting,
}

impl Upgraded {
    pub(crate) fn new(stream: Stream, early: Input, seat: &Seat) -> Upgraded {
        let waiting = seat.waiting();
        stream.limit_writes(waiting.longest_write());
        Upgraded(Arc::new(Inner {
            stream,
            early: Mutex::new(early),
            waiting,
        }))
    }

    /// Has the connection served, on this thread.
    pub(crate) fn pass_to(self, serve: impl FnOnce(Upgraded)) {
        // A panic's message has been written by its hook; there is no one else to tell.
        let _ = Panic::catch(|| serve(self));
    }

    /// Returns the client's address; `None` on a Unix socket.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.0.stream.peer()
    }

    /// Returns whether the client speaks TLS.
    pub fn is_secure(&self) -> bool {
        self.0.stream.is_secure()
    }

    /// Sends no more, so that the client sees an end, or neither sends nor receives more.
    pub fn shutdown(&self, how: Shutdown) {
        self.0.stream.shutdown(how);
    }

    /// Sends no more, and gives the client a second to see what it was sent, and to do the same.
    pub(crate) fn linger(&self) {
        self.0.waiting.briefly(|| self.0.stream.linger());
    }

    /// Returns whether the server has been shut down while this waited for the client: then the
    /// wait has ended with an error.
    pub fn is_dismissed(&self) -> bool {
        self.0.waiting.is_dismissed()
    }
}

impl Read for &Upgraded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let inner = &self.0;
        {
            let mut early = locked(&inner.early);
            if !early.is_empty() {
                return early.read(&inner.stream, buffer);
            }
        }
        inner.waiting.during(|| inner.stream.read(buffer))
    }
}

impl Write for &Upgraded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stream = &self.0.stream;
        // First the bytes for which the kernel has room: a write that sends some and then waits in
        // vain returns their number, and the next write would wait as long again.
        let sent = stream.offer(&[], bytes);
        match sent.and_then(|count| stream.write_all(&bytes[count..], &[])) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                stream.abort();
                Err(match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        let why = "the client takes nothing of what is sent";
                        io::Error::new(io::ErrorKind::TimedOut, why)
                    }
                    _ => error,
                })
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Upgraded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for Upgraded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgraded").finish_non_exhaustive()
    }
}
