//! The other server, and connections to it, with TLS or without.
//!
//! One thread may read while another writes: the session of TLS is locked for what takes no time
//! only. Records are sent by the writer alone, so that they stay in order.
//!
//! Each read and each write has a time limit. While both go on, the other server may have reasons
//! to take longer, for which it is not given up: its answer may depend on what the client is still
//! to send, and it may take no more of the request before the client has taken more of the answer.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pirn::scope;
use pirn_http::Uri;
use pirn_http::http::uri::{Authority, Scheme};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::retry::retry;

/// How many connections are kept while they are not used.
const KEPT: usize = 256;
/// For how long they are.
const KEPT_FOR: Duration = Duration::from_secs(15);
/// How long it may take to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// The most bytes of a record of TLS.
const RECORD: usize = 16 * 1024;

/// See the module's documentation.
pub(super) struct Origin {
    authority: Authority,
    port: u16,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// How long each read and each write may take.
    timeout: Duration,
    kept: Mutex<Vec<(Connection, Instant)>>,
}

impl Origin {
    /// Returns the server at an address. `None`: a proxy cannot serve this address.
    pub(super) fn new(url: &Uri, timeout: Duration) -> Option<Origin> {
        let authority = url.authority()?.clone();
        let is_secure = match url.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return None,
        };
        let text = authority.as_str();
        let (_, host_and_port) = text.rsplit_once('@').unwrap_or(("", text));
        let port = match (authority.port_u16(), is_secure) {
            (Some(port), _) => port,
            // What follows the host is no port.
            _ if host_and_port != authority.host() => return None,
            (None, true) => 443,
            (None, false) => 80,
        };
        let tls = match is_secure {
            true => Some((configuration(), server_name(authority.host())?)),
            false => None,
        };
        Some(Origin {
            authority,
            port,
            tls,
            timeout,
            kept: Mutex::default(),
        })
    }

    /// Returns the host, and the port if it is given.
    pub(super) fn name(&self) -> &str {
        let text = self.authority.as_str();
        text.rsplit_once('@').map_or(text, |(_, name)| name)
    }

    /// Returns what the address has before the host: a name and a password.
    pub(super) fn credentials(&self) -> Option<&str> {
        let (credentials, _) = self.authority.as_str().rsplit_once('@')?;
        Some(credentials)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Connection, Instant)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a connection that has been kept, and seems to be usable.
    pub(super) fn kept(&self) -> Option<Connection> {
        loop {
            let (connection, since) = self.lock().pop()?;
            if since.elapsed() < KEPT_FOR && connection.is_quiet() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose last answer has been read.
    pub(super) fn keep(&self, connection: Connection) {
        let mut kept = self.lock();
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((connection, Instant::now()));
    }

    /// Makes a connection.
    pub(super) fn connect(&self) -> io::Result<Connection> {
        scope::with_deadline(Instant::now() + CONNECT, || {
            let host = bare(self.authority.host());
            let mut last = io::ErrorKind::AddrNotAvailable.into();
            for address in (host, self.port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, CONNECT) {
                    Ok(socket) => return self.open(socket),
                    Err(error) => last = error,
                }
            }
            Err(last)
        })
    }

    fn open(&self, socket: TcpStream) -> io::Result<Connection> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(self.timeout))?;
        socket.set_write_timeout(Some(self.timeout))?;
        let mut tls = None;
        if let Some((config, name)) = &self.tls {
            let session = ClientConnection::new(Arc::clone(config), name.clone());
            let mut session = session.map_err(io::Error::other)?;
            while session.is_handshaking() {
                session.complete_io(&mut &socket)?;
            }
            tls = Some(Mutex::new(session));
        }
        Ok(Connection {
            socket,
            tls,
            is_sending: AtomicBool::new(false),
            passed: AtomicU64::new(0),
        })
    }
}

fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

fn server_name(host: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(bare(host).to_owned()).ok()
}

/// Returns what TLS is spoken with: the authorities that Mozilla trusts.
fn configuration() -> Arc<ClientConfig> {
    let roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.expect("the provider has these versions");
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

/// A connection to the other server. It is a [`Read`] and a [`Write`] by a shared reference.
pub(super) struct Connection {
    socket: TcpStream,
    tls: Option<Mutex<ClientConnection>>,
    /// The body of a request is being sent.
    is_sending: AtomicBool,
    /// It grows when a piece of an answer begins to be passed on, and when the client has taken it:
    /// it is odd in between.
    passed: AtomicU64,
}

impl Connection {
    /// Sends the body of a request. Meanwhile the answer may take as long as it likes.
    pub(super) fn while_sending<R>(&self, send: impl FnOnce() -> R) -> R {
        self.is_sending.store(true, SeqCst);
        let result = send();
        self.is_sending.store(false, SeqCst);
        result
    }

    /// Passes a piece of an answer on. Meanwhile the other server may take nothing of the request.
    pub(super) fn while_passing<R>(&self, pass: impl FnOnce() -> R) -> R {
        self.passed.fetch_add(1, SeqCst);
        let result = pass();
        self.passed.fetch_add(1, SeqCst);
        result
    }

    /// Returns whether nothing has come that has not been read, not even an end.
    pub(super) fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let mut byte = [0];
        let next = recv(&self.socket, &mut byte, flags);
        let kept = self.session().is_some_and(|mut session| {
            let state = session.process_new_packets();
            state.is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
        });
        matches!(next, Err(Errno::AGAIN)) && !kept
    }

    /// Lets the other server be silent for as long as it likes.
    pub(super) fn be_patient(&self) {
        let _ = self.socket.set_read_timeout(None); // The socket is one.
    }

    pub(super) fn shutdown(&self, how: Shutdown) {
        if let Some(mut session) = self.session()
            && how != Shutdown::Read
        {
            session.send_close_notify();
            drop(session);
            let _ = (&*self).flush(); // It may be gone.
        }
        let _ = self.socket.shutdown(how); // It may be gone.
    }

    fn session(&self) -> Option<MutexGuard<'_, ClientConnection>> {
        let session = self.tls.as_ref()?;
        Some(session.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(mut session) = self.session() else {
                return (&self.socket).read(buffer);
            };
            match session.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
            drop(session);
            self.socket.peek(&mut [0])?; // Waits without the lock.
            if let Some(mut session) = self.session() {
                session.read_tls(&mut &self.socket)?;
                let state = session.process_new_packets();
                state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            }
        }
    }

    /// Sends some of the bytes, as they are.
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let before = self.passed.load(SeqCst);
            let result = (&self.socket).write(bytes);
            // All the time, the client has waited for the server.
            let has_waited = before.is_multiple_of(2) && before == self.passed.load(SeqCst);
            if !is_late(&result) || has_waited {
                return result;
            }
        }
    }
}

fn is_late(result: &io::Result<usize>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

impl Read for &Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let was_sending = self.is_sending.load(SeqCst);
            let result = self.receive(buffer);
            if !is_late(&result) || !was_sending {
                return result;
            }
        }
    }
}

impl Write for &Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(mut session) = self.session() else {
            return self.send(bytes);
        };
        let piece = &bytes[..bytes.len().min(RECORD)];
        session.writer().write_all(piece)?;
        drop(session);
        self.flush()?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut records = Vec::new();
        if let Some(mut session) = self.session() {
            while session.wants_write() {
                session.write_tls(&mut records)?;
            }
        }
        let mut rest = &records[..];
        while !rest.is_empty() {
            match retry(|| self.send(rest))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => rest = &rest[count..],
            }
        }
        Ok(())
    }
}
