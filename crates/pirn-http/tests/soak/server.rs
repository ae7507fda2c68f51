//! The server, and the certificate that its clients trust. What it answers depends on the number in
//! the request's path, so that an answer to another request is noticed.

use crate::wire::Pattern;
use pirn::thread;
use pirn_http::files::Files;
use pirn_http::{
    Body, Error, Listener, Request, Response, Running, Server, Timeouts, Tls, WebSocket,
};
use rcgen::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The number of the file, which is the same for all.
pub(crate) const FILE: u64 = 0;
/// The length of the file.
pub(crate) const FILE_LENGTH: u64 = 300_000;

/// Where the server is.
pub(crate) struct Address {
    pub(crate) plain: SocketAddr,
    pub(crate) tls: SocketAddr,
    /// The client of TLS sets which protocols it offers.
    pub(crate) trust: ClientConfig,
    _files: TempDir,
}

impl Address {
    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.plain)
    }
}

/// Connects, as soon as a port is free: the port of a closed connection is not free for a second.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return stream,
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                thread::sleep(Duration::from_millis(50));
            }
            Err(error) => panic!("no connection to the server: {error}"),
        }
    }
}

fn number(request: &Request, name: &str) -> Result<u64, Error> {
    request.param(name)
}

/// Reads the body, and says whose it was, how long, and whether it was as it must be.
fn upload(request: &mut Request) -> io::Result<String> {
    let Ok(number) = number(request, "number") else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut pattern = Pattern::new(number);
    let mut piece = vec![0; 8192];
    loop {
        match request.read(&mut piece)? {
            0 => return Ok(format!("{number} {}", pattern.position())),
            count => assert!(pattern.is_next(&piece[..count]), "not the body of {number}"),
        }
    }
}

fn download(request: &mut Request) -> Result<Body, Error> {
    let (number, bytes) = (number(request, "number")?, number(request, "bytes")?);
    Ok(Body::from_sized_reader(Pattern::new(number), bytes))
}

fn pushed(request: &mut Request) -> io::Result<()> {
    let numbers = number(request, "number").and_then(|one| Ok((one, number(request, "bytes")?)));
    let (number, bytes) = numbers.map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut pattern = Pattern::new(number).take(bytes);
    let mut body = request.respond(Response::ok())?;
    let mut piece = [0; 3000];
    loop {
        match pattern.read(&mut piece)? {
            0 => return Ok(()),
            count => body.write_all(&piece[..count])?,
        }
    }
}

/// Waits for what never comes: only the client's end ends it.
fn wait(_: &mut Request) -> io::Result<()> {
    let (mut silent, _other) = std::os::unix::net::UnixStream::pair()?;
    silent.read(&mut [0]).map(drop)
}

fn echo_messages(mut socket: WebSocket) -> io::Result<()> {
    while let Some(message) = socket.read()? {
        socket.send(message)?;
    }
    Ok(())
}

/// Returns the limits. In a long run the machine may do much else, and who waits for a processor
/// for seconds is no slow client: those are then found later.
fn timeouts(length: Duration) -> Timeouts {
    let is_long = length > Duration::from_secs(10);
    Timeouts::default()
        .head(Duration::from_secs(if is_long { 20 } else { 2 }))
        .body(Duration::from_secs(60), 500)
        .grace(Duration::from_secs(30))
}

pub(crate) fn start(length: Duration) -> (Running, Address) {
    let files = TempDir::new().unwrap();
    let mut file = Vec::new();
    Pattern::new(FILE)
        .take(FILE_LENGTH)
        .read_to_end(&mut file)
        .unwrap();
    std::fs::write(files.path().join("file"), file).unwrap();
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
    let CertifiedKey { cert, signing_key } = issued.unwrap();
    let [certificate, key] = ["pem", "key"].map(|end| files.path().join(format!("server.{end}")));
    std::fs::write(&certificate, cert.pem()).unwrap();
    std::fs::write(&key, signing_key.serialize_pem()).unwrap();
    let tls = Tls::from_files(&certificate, &key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trust = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let trust = trust
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let secure = Listener::tcp("127.0.0.1:0").unwrap().tls(&tls);
    let address = Address {
        tls: secure.local_addr().unwrap(),
        plain: ([127, 0, 0, 1], 0).into(),
        trust,
        _files: TempDir::new().unwrap(),
    };
    let running = Server::new()
        .get("/echo/{number}", |request: &mut Request| {
            request.param::<String>("number")
        })
        .post("/upload/{number}", upload)
        .get("/download/{number}/{bytes}", download)
        .get("/pushed/{number}/{bytes}", pushed)
        .get("/wait/{number}", wait)
        .files("/files", Files::new(files.path()).unwrap())
        .websocket("/socket", echo_messages)
        .timeouts(timeouts(length))
        .bind("127.0.0.1:0")
        .unwrap()
        .and(secure)
        .start()
        .unwrap();
    let plain = running.local_addr().unwrap();
    (
        running,
        Address {
            plain,
            _files: files,
            ..address
        },
    )
}
