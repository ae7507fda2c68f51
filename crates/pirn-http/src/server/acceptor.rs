//! Servers of other protocols than HTTP.

use super::{Bound, Listener, Server, Timeouts};
use crate::limits::Limits;
#[cfg(feature = "tls")]
use crate::tls::Tls;
use crate::upgrade::Upgraded;
use pirn::thread::Builder;
use std::fmt;
use std::io;
use std::net::ToSocketAddrs;

/// Returns a server of another protocol than HTTP: `handler` gets each connection, on a virtual
/// thread of its own, and closes it by returning, also with an error. What the handler has sent
/// arrives even if the client still sends: the client has a second to read it.
///
/// The server cuts off a client that takes nothing of what is written for as long as a connection
/// may be [idle](Timeouts::idle). All else is as in a server of HTTP: TLS and Unix sockets, a limit
/// on connections, listeners that are handed over, and an end with a grace. A handler that waits
/// for its client when the server is [shut down](crate::Running::shutdown) is woken with an error,
/// and others when the grace is over.
///
/// # Examples
/// ```
/// use pirn_http::tcp_acceptor;
/// use std::io::{BufRead, BufReader, Read, Write};
/// use std::net::TcpStream;
///
/// # fn main() -> std::io::Result<()> {
/// let server = tcp_acceptor(|connection| {
///     for line in BufReader::new(&connection).lines() {
///         writeln!(&connection, "{}", line?.to_uppercase())?;
///     }
///     Ok(())
/// })
/// .bind("127.0.0.1:0")?
/// .start()?;
///
/// let mut client = TcpStream::connect(server.local_addr().unwrap())?;
/// client.write_all(b"hello\n")?;
/// let mut answer = [0; 6];
/// client.read_exact(&mut answer)?;
/// assert_eq!(&answer, b"HELLO\n");
/// assert_eq!(server.shutdown(), 0);
/// # Ok(())
/// # }
/// ```
pub fn tcp_acceptor<F>(handler: F) -> Acceptor
where
    F: Fn(Upgraded) -> io::Result<()> + Send + Sync + 'static,
{
    Acceptor(Server {
        protocol: Some(Box::new(handler)),
        ..Server::new()
    })
}

/// A server of another protocol than HTTP, while it is described: see [`tcp_acceptor`].
#[must_use = "an acceptor serves after `bind`"]
pub struct Acceptor(Server);

impl Acceptor {
    /// Sets how many [connections](Limits::connections) there may be. The other limits are for HTTP
    /// only.
    pub fn limits(self, limits: Limits) -> Acceptor {
        Acceptor(self.0.limits(limits))
    }

    /// Sets how long a TLS [handshake](Timeouts::handshake) and a [write](Timeouts::idle) may take,
    /// and the [grace](Timeouts::grace). The other time limits are for HTTP only: the handler
    /// decides how long a client may be silent.
    pub fn timeouts(self, timeouts: Timeouts) -> Acceptor {
        Acceptor(self.0.timeouts(timeouts))
    }

    /// Sets the builder of the connections' threads: see [`Server::threads`].
    pub fn threads(self, threads: Builder) -> Acceptor {
        Acceptor(self.0.threads(threads))
    }

    /// Sets that the connections have platform threads: see [`Server::platform_threads`].
    pub fn platform_threads(
        self,
        builder: impl Fn() -> std::thread::Builder + Send + Sync + 'static,
    ) -> Acceptor {
        Acceptor(self.0.platform_threads(builder))
    }

    /// Listens on an address.
    ///
    /// # Errors
    /// If the address is not available.
    pub fn bind(self, address: impl ToSocketAddrs) -> io::Result<Bound> {
        self.0.bind(address)
    }

    /// Listens on an address for clients that speak TLS. `h2` and `http/1.1` are not offered to
    /// them.
    ///
    /// # Errors
    /// If the address is not available.
    #[cfg(feature = "tls")]
    pub fn bind_tls(self, address: impl ToSocketAddrs, tls: &Tls) -> io::Result<Bound> {
        self.0.bind_tls(address, tls)
    }

    /// Serves the clients of a [`Listener`], a `TcpListener` or a `UnixListener`.
    pub fn listen(self, listener: impl Into<Listener>) -> Bound {
        self.0.listen(listener)
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}
