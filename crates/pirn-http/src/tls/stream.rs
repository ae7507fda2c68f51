//! A connection's bytes through TLS.
//!
//! Both directions are used through a shared reference, from two threads at once if need be. The
//! session is locked only for what takes no time: never while a thread waits for the socket.
//!
//! ```text
//!   read   socket -> chunk        no lock
//!          chunk -> session -> buffer       session
//!   write  sending                held until the records are on the socket, so that they stay in
//!            bytes -> session -> records    session                               order
//!            records -> socket
//! ```

use crate::poison::locked;
use crate::socket::{Socket, retry};
use rustls::pki_types::CertificateDer;
use rustls::{ServerConfig, ServerConnection};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

/// How many bytes are read from the socket at once. They are on the thread's stack.
const CHUNK: usize = 2048;

/// The most bytes of a record: what is written is cut at this length.
const RECORD: usize = 16 * 1024;

/// See the module's documentation.
pub(crate) struct TlsStream {
    socket: Socket,
    session: Mutex<ServerConnection>,
    /// The records that are being written.
    sending: Mutex<Vec<u8>>,
    /// The bytes that have come, but did not fit in the session; empty during the handshake.
    kept: Mutex<Vec<u8>>,
    /// The client has sent bytes that are not TLS, and the server has answered with an alert. The
    /// session takes and sends nothing more.
    has_failed: AtomicBool,
}

impl TlsStream {
    /// Shakes hands with a client.
    ///
    /// # Errors
    /// If the client cannot be agreed with, is gone, or is too slow.
    pub(crate) fn accept(socket: Socket, config: Arc<ServerConfig>) -> io::Result<TlsStream> {
        let session = ServerConnection::new(config).map_err(io::Error::other)?;
        let stream = TlsStream {
            socket,
            session: Mutex::new(session),
            sending: Mutex::default(),
            kept: Mutex::default(),
            has_failed: AtomicBool::new(false),
        };
        while stream.session().is_handshaking() {
            if stream.receive()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(stream)
    }

    fn session(&self) -> MutexGuard<'_, ServerConnection> {
        locked(&self.session)
    }

    /// Reads from the socket, or takes what was kept, and has the session take the records. Returns
    /// the number of bytes; zero: the client sends no more.
    fn receive(&self) -> io::Result<usize> {
        self.check()?;
        let mut chunk = [0; CHUNK];
        let kept = std::mem::take(&mut *locked(&self.kept));
        let bytes = match kept.is_empty() {
            true => {
                let count = retry(|| (&self.socket).read(&mut chunk))?;
                &chunk[..count]
            }
            false => &kept[..],
        };
        let (rest, answers) = self.take_in(bytes)?;
        *locked(&self.kept) = rest.to_vec();
        if answers {
            self.send(&[], &[])?;
        }
        Ok(bytes.len())
    }

    /// Gives bytes of the client to the session. Returns those that it has no room for until what
    /// it has is read, and whether it has something to send.
    fn take_in<'b>(&self, bytes: &'b [u8]) -> io::Result<(&'b [u8], bool)> {
        let mut rest = bytes;
        let mut session = self.session();
        while !rest.is_empty() {
            if session.read_tls(&mut rest)? == 0 {
                rest = &[]; // After its farewell, nothing that a client sends counts.
            }
            match session.process_new_packets() {
                // With more than this, the next `read_tls` would fail.
                Ok(state) if state.plaintext_bytes_to_read() >= RECORD => break,
                Ok(_) => {}
                Err(error) => {
                    drop(session);
                    let _ = self.send(&[], &[]); // The alert; the client may be gone.
                    self.has_failed.store(true, SeqCst);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }
        Ok((rest, session.wants_write()))
    }

    fn check(&self) -> io::Result<()> {
        match self.has_failed.load(SeqCst) {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let taken = self.session().reader().read(buffer);
            match taken {
                // All that has come was taken before.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
            // Without a farewell: what is cut off shows in the framing of the messages.
            if self.receive()? == 0 {
                return Ok(0);
            }
        }
    }

    /// Writes all of both parts, after what the session itself has to say.
    pub(crate) fn send(&self, head: &[u8], body: &[u8]) -> io::Result<()> {
        self.check()?;
        let mut records = locked(&self.sending);
        let pieces = head.chunks(RECORD).chain(body.chunks(RECORD));
        for piece in pieces {
            let mut session = self.session();
            session.writer().write_all(piece)?;
            take_records(&mut session, &mut records)?;
            drop(session);
            if records.len() >= RECORD {
                self.put(&mut records)?;
            }
        }
        take_records(&mut self.session(), &mut records)?;
        let result = self.put(&mut records);
        *records = Vec::new(); // A connection that waits holds no buffer.
        result
    }

    fn put(&self, records: &mut Vec<u8>) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        // As in a write of `Upgraded`.
        let sent = self.socket.offer(records, &[]);
        let result = sent.and_then(|count| (&self.socket).write_all(&records[count..]));
        records.clear();
        result
    }

    /// Says farewell, so that the client knows that nothing is missing. Does not wait for a client
    /// that reads nothing.
    fn say_farewell(&self) {
        let Ok(mut records) = self.sending.try_lock() else {
            return; // Another thread is in the middle of a record.
        };
        if self.check().is_err() {
            return;
        }
        let mut session = self.session();
        session.send_close_notify();
        let taken = take_records(&mut session, &mut records);
        if taken.is_ok() {
            let _ = self.socket.offer(&records, &[]); // The client may be gone.
        }
        records.clear();
    }

    pub(crate) fn shutdown(&self, how: Shutdown) {
        if how != Shutdown::Read {
            self.say_farewell();
        }
        self.socket.shutdown(how);
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Returns whether HTTP/2 has been agreed about.
    #[cfg(feature = "http2")]
    pub(crate) fn is_http2(&self) -> bool {
        self.session().alpn_protocol() == Some(super::HTTP_2)
    }

    /// Returns the socket, and the session that is spoken on it.
    #[cfg(feature = "http2")]
    pub(crate) fn into_parts(self) -> (Socket, ServerConnection) {
        let session = self.session.into_inner();
        (
            self.socket,
            session.unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }

    /// Returns the name that the client has asked for.
    pub(crate) fn server_name(&self) -> Option<String> {
        self.session().server_name().map(str::to_owned)
    }

    /// Returns the certificate of the client.
    pub(crate) fn client_certificate(&self) -> Option<CertificateDer<'static>> {
        let session = self.session();
        let certificate = session.peer_certificates()?.first()?;
        Some(certificate.clone().into_owned())
    }
}

/// Adds to `records` what the session has to send.
fn take_records(session: &mut ServerConnection, records: &mut Vec<u8>) -> io::Result<()> {
    while session.wants_write() {
        session.write_tls(records)?;
    }
    Ok(())
}

/// A stream that says farewell when it is dropped.
#[derive(Debug)]
pub(crate) struct Farewell(TlsStream);

impl From<TlsStream> for Farewell {
    fn from(stream: TlsStream) -> Farewell {
        Farewell(stream)
    }
}

impl Deref for Farewell {
    type Target = TlsStream;

    fn deref(&self) -> &TlsStream {
        &self.0
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        self.say_farewell();
    }
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsStream").finish_non_exhaustive()
    }
}
