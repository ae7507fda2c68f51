//! `rustls`: TLS servers and clients, over TCP on the loopback interface and over Unix sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use pirn::thread;
use pirn_compat::{self as common, Latch, THREADS, on_threads, watched};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

/// Both sides of TLS with one self-signed certificate, which the clients trust.
struct Tls {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Tls {
    fn new() -> Self {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Tls {
            server: Arc::new(server),
            client: Arc::new(client),
        }
    }

    /// The server's side of `socket`. The handshake happens with the first read or write.
    fn serve<S: Read + Write>(&self, socket: S) -> StreamOwned<ServerConnection, S> {
        let connection = ServerConnection::new(Arc::clone(&self.server)).unwrap();
        StreamOwned::new(connection, socket)
    }

    /// The client's side of `socket`, after the handshake.
    fn connect<S: Read + Write>(&self, mut socket: S) -> StreamOwned<ClientConnection, S> {
        let name = ServerName::try_from("localhost").unwrap();
        let mut connection = ClientConnection::new(Arc::clone(&self.client), name).unwrap();
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).unwrap();
        }
        StreamOwned::new(connection, socket)
    }
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// What the client with this number sends.
fn payload(index: usize, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + index * 7) as u8).collect()
}

/// Says that nothing more will be sent, so that the peer can tell the end from a cut.
fn close_notify<S: Read + Write>(tls: &mut StreamOwned<ClientConnection, S>) {
    tls.conn.send_close_notify();
    tls.flush().unwrap();
}

/// Twice all connections meet: every handler is blocked in a TLS read before any client sends, and
/// every client is blocked in one before any handler answers.
#[watched]
fn echo_over_tcp() {
    let tls = Tls::new();
    let (listener, address) = listen();
    let (connected, heard) = (Latch::new(THREADS), Latch::new(THREADS));
    let handler = |socket: TcpStream| {
        let mut tls = tls.serve(socket);
        let mut buffer = [0; 1024];
        let mut echoed = 0;
        loop {
            let length = tls.read(&mut buffer).unwrap();
            if length == 0 {
                return echoed;
            }
            if echoed == 0 {
                heard.arrive_and_wait();
            }
            tls.write_all(&buffer[..length]).unwrap();
            echoed += length;
        }
    };
    let client = |index: usize| {
        let mut tls = tls.connect(TcpStream::connect(address).unwrap());
        connected.arrive_and_wait();
        for round in 0..10 {
            let sent = payload(index + round, 100 + round);
            tls.write_all(&sent).unwrap();
            let mut received = vec![0; sent.len()];
            tls.read_exact(&mut received).unwrap();
            assert_eq!(received, sent);
        }
        close_notify(&mut tls);
    };

    let echoed: Vec<usize> = thread::scope(|scope| {
        let acceptor = scope.spawn(|| {
            let handlers: Vec<_> = (0..THREADS)
                .map(|_| {
                    let (socket, _) = listener.accept().unwrap();
                    scope.spawn(|| handler(socket))
                })
                .collect();
            handlers.into_iter().map(|h| h.join().unwrap()).collect()
        });
        on_threads(THREADS, client);
        acceptor.join().unwrap()
    });
    let each: usize = (0..10).map(|round| 100 + round).sum();
    assert_eq!(echoed, vec![each; THREADS]);
}

/// More than a socket's buffers hold: the clients block in the middle of writing, all at once,
/// since no server reads before all have begun.
#[watched]
fn large_payloads_over_unix_sockets() {
    const LENGTH: usize = 384 * 1024;
    let tls = Tls::new();
    let writing = Latch::new(THREADS);
    on_threads(THREADS, |index| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let sent = payload(index, LENGTH);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut tls = tls.connect(ours);
                writing.arrive();
                tls.write_all(&sent).unwrap();
                close_notify(&mut tls);
                let mut answer = Vec::new();
                tls.read_to_end(&mut answer).unwrap();
                assert_eq!(answer, b"got it");
            });
            let mut tls = tls.serve(theirs);
            while tls.conn.is_handshaking() {
                tls.conn.complete_io(&mut tls.sock).unwrap();
            }
            writing.wait();
            let mut received = Vec::new();
            tls.read_to_end(&mut received).unwrap();
            assert!(received == sent, "client {index}: wrong content");
            tls.write_all(b"got it").unwrap();
            tls.conn.send_close_notify();
            tls.flush().unwrap();
        });
    });
}

#[watched]
fn a_cut_connection_fails_the_blocked_reader() {
    let tls = Tls::new();
    let (listener, address) = listen();
    let reading = Latch::new(THREADS);
    let handler = |socket: TcpStream| {
        let mut tls = tls.serve(socket);
        tls.write_all(b"hello").unwrap();
        reading.wait();
        // Dropping the socket without close_notify is a truncation attack, or a crashed server.
    };
    let client = |_| {
        let mut tls = tls.connect(TcpStream::connect(address).unwrap());
        let mut received = [0; 5];
        tls.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"hello");
        reading.arrive();
        let error = tls.read(&mut received).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..THREADS {
                let (socket, _) = listener.accept().unwrap();
                scope.spawn(|| handler(socket));
            }
        });
        on_threads(THREADS, client);
    });
}

/// A read timeout of the socket comes through, and the TLS connection survives it.
#[watched]
fn a_read_timeout_leaves_the_connection_usable() {
    let tls = Tls::new();
    let (listener, address) = listen();
    let timed_out = Latch::new(THREADS);
    let handler = |socket: TcpStream| {
        let mut tls = tls.serve(socket);
        tls.conn.complete_io(&mut tls.sock).unwrap();
        timed_out.wait();
        tls.write_all(b"late").unwrap();
    };
    let client = |_| {
        let mut tls = tls.connect(TcpStream::connect(address).unwrap());
        let mut received = [0; 4];
        let timeout = Duration::from_millis(20);
        tls.sock.set_read_timeout(Some(timeout)).unwrap();
        let error = tls.read_exact(&mut received).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        tls.sock.set_read_timeout(None).unwrap();
        timed_out.arrive();
        tls.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"late");
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..THREADS {
                let (socket, _) = listener.accept().unwrap();
                scope.spawn(|| handler(socket));
            }
        });
        on_threads(THREADS, client);
    });
}
