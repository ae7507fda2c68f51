//! The bytes below HTTP/2: a socket, with TLS or without, by the I/O traits that h2 wants.

use crate::socket::Socket;
use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use pirn::{AsyncIo, thread};
use std::io::{self, IoSlice, Read};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

/// After so many reads in a row the others get a turn: h2 reads as long as there is something, and
/// a client that sends pings, say, as fast as it can would keep the carrier to itself.
const TURN: u32 = 16;

/// How many bytes are read of a client that has been told that the connection ends.
const DRAINED: usize = 1 << 20;

/// What a client has to send before anything else: the preface, and a frame of SETTINGS.
const BEGINNING: u64 = 24 + 9;

/// A connection before HTTP/2 begins on it.
pub(crate) struct Transport {
    pub(crate) socket: Socket,
    /// The session of TLS, whose handshake is over, and the configuration that it was made with.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Box<(rustls::ServerConnection, Arc<rustls::ServerConfig>)>>,
    /// What has been read from it.
    pub(crate) early: Vec<u8>,
}

/// A client, as far as the connection tells.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    pub(crate) address: Option<SocketAddr>,
    pub(crate) is_secure: bool,
    #[cfg(feature = "tls")]
    pub(crate) server_name: Option<String>,
    #[cfg(feature = "tls")]
    pub(crate) certificate: Option<rustls::pki_types::CertificateDer<'static>>,
}

enum Lower {
    Plain(AsyncIo<Socket>),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::server::TlsStream<AsyncIo<Socket>>>),
}

/// See the module's documentation.
pub(super) struct Wire {
    early: Vec<u8>,
    lower: Lower,
    received: Arc<Received>,
    in_a_row: u32,
    /// h2 has said all that it has to say.
    is_shut: bool,
}

/// How many bytes a client has sent.
#[derive(Debug, Default)]
pub(super) struct Received(AtomicU64);

impl Received {
    /// Returns whether HTTP/2 has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.0.load(Relaxed) >= BEGINNING // Relaxed: added to by the same thread.
    }
}

impl Transport {
    /// Returns the connection for h2, and who the client is.
    ///
    /// # Errors
    /// If the events of the socket cannot be waited for.
    pub(super) fn open(self) -> io::Result<(Wire, Peer)> {
        let mut peer = Peer {
            address: self.socket.peer(),
            ..Peer::default()
        };
        let lower = AsyncIo::new(self.socket)?;
        #[cfg(feature = "tls")]
        let lower = match self.tls {
            None => Lower::Plain(lower),
            Some(tls) => {
                let (session, config) = *tls;
                peer.is_secure = true;
                peer.server_name = session.server_name().map(str::to_owned);
                let certificate = session.peer_certificates().and_then(<[_]>::first);
                peer.certificate = certificate.map(|one| one.clone().into_owned());
                Lower::Tls(Box::new(take_over(session, config, lower)?))
            }
        };
        #[cfg(not(feature = "tls"))]
        let (lower, _) = (Lower::Plain(lower), &mut peer);
        let wire = Wire {
            early: self.early,
            lower,
            received: Arc::default(),
            in_a_row: 0,
            is_shut: false,
        };
        Ok((wire, peer))
    }
}

/// Puts tokio-rustls around a session whose handshake is over. tokio-rustls makes a session of its
/// own, and offers to change it before the handshake: it is replaced, and there is nothing left to
/// shake hands about.
#[cfg(feature = "tls")]
fn take_over(
    session: rustls::ServerConnection,
    config: Arc<rustls::ServerConfig>,
    socket: AsyncIo<Socket>,
) -> io::Result<tokio_rustls::server::TlsStream<AsyncIo<Socket>>> {
    let acceptor = tokio_rustls::TlsAcceptor::from(config);
    super::wait_for(acceptor.accept_with(socket, |new| *new = session))?
}

impl Wire {
    pub(super) fn received(&self) -> Arc<Received> {
        Arc::clone(&self.received)
    }

    fn lower(&mut self) -> Pin<&mut (dyn Duplex + Send + Unpin)> {
        match &mut self.lower {
            Lower::Plain(socket) => Pin::new(socket),
            #[cfg(feature = "tls")]
            Lower::Tls(stream) => Pin::new(&mut **stream),
        }
    }
}

/// Both directions.
trait Duplex: AsyncRead + AsyncWrite {}

impl<T: AsyncRead + AsyncWrite> Duplex for T {}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if self.early.is_empty() {
            if self.in_a_row == TURN {
                self.in_a_row = 0;
                thread::yield_now();
            }
            let read = self.lower().poll_read(context, buffer);
            if read.is_pending() {
                self.in_a_row = 0;
            }
            ready!(read)?;
            self.in_a_row += 1;
        } else {
            let count = self.early.len().min(buffer.remaining());
            buffer.put_slice(&self.early[..count]);
            self.early.drain(..count);
        }
        let count = (buffer.filled().len() - before) as u64;
        self.received.0.fetch_add(count, Relaxed); // Relaxed: see `has_begun`.
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.lower().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.lower().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.lower {
            Lower::Plain(socket) => socket.is_write_vectored(),
            #[cfg(feature = "tls")]
            Lower::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.lower().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_shut = true;
        self.lower().poll_shutdown(context)
    }
}

impl Drop for Wire {
    /// Where bytes of the client are unread, closing the socket would reset it, and the client
    /// might never see the last frames: so it has a moment to close it first. The driver has set a
    /// time limit.
    fn drop(&mut self) {
        if !self.is_shut {
            return;
        }
        let mut socket = match &self.lower {
            Lower::Plain(socket) => socket.get_ref(),
            #[cfg(feature = "tls")]
            Lower::Tls(stream) => stream.get_ref().0.get_ref(),
        };
        let mut buffer = [0; 1024];
        let mut drained = 0;
        while drained < DRAINED {
            match socket.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => drained += count,
            }
        }
    }
}
