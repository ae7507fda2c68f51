//! TLS, with rustls' client.

use pirn_http::{Limits, Listener, Request, Response, Server, Timeouts, Tls};
use pirn_testing::patient;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;

/// A folder of certificates that one authority has issued.
struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let folder = TempDir::new().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        fs::write(folder.path().join("roots.pem"), issuer.pem()).unwrap();
        Authority { folder, issuer }
    }

    /// Writes a certificate and its key into two files.
    fn issue(&self, file: &str, name: &str) -> [PathBuf; 2] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let paths =
            ["pem", "key"].map(|extension| self.folder.path().join(format!("{file}.{extension}")));
        fs::write(&paths[0], certificate.pem()).unwrap();
        fs::write(&paths[1], key.serialize_pem()).unwrap();
        paths
    }

    fn roots(&self) -> PathBuf {
        self.folder.path().join("roots.pem")
    }

    fn client(&self, certificate: Option<&[PathBuf; 2]>) -> Arc<ClientConfig> {
        use rustls::pki_types::pem::PemObject;
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match certificate {
            None => config.with_no_client_auth(),
            Some([certificate, key]) => {
                let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
                let key = PrivateKeyDer::from_pem_file(key).unwrap();
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }
}

fn hello(request: &mut Request) -> String {
    let name = request.server_name().unwrap_or_default();
    let known = request.client_certificate().is_some();
    format!("{} {name} {known}", request.is_secure())
}

fn server(tls: &Tls) -> pirn_http::Running {
    let server = Server::new()
        .get("/", hello)
        .post("/echo", |request: &mut Request| request.bytes());
    server
        .bind_tls("127.0.0.1:0", tls)
        .unwrap()
        .start()
        .unwrap()
}

type Client = StreamOwned<ClientConnection, TcpStream>;

fn connect(server: &pirn_http::Running, config: &Arc<ClientConfig>, name: &str) -> Client {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let session = ClientConnection::new(Arc::clone(config), name).unwrap();
    StreamOwned::new(
        session,
        TcpStream::connect(server.local_addr().unwrap()).unwrap(),
    )
}

/// Makes a request and returns the body of the answer.
fn get(client: &mut Client, request: &str) -> io::Result<String> {
    client.write_all(request.as_bytes())?;
    let mut all = String::new();
    client.read_to_string(&mut all)?; // An end without a farewell is an error here.
    Ok(all.split_once("\r\n\r\n").unwrap().1.to_owned())
}

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

fn tls(pair: &[PathBuf; 2]) -> Tls {
    Tls::from_files(&pair[0], &pair[1]).unwrap()
}

#[test]
fn a_client_is_served_by_tls() {
    let authority = Authority::new();
    let server = server(&tls(&authority.issue("a", "a.example")));
    let config = authority.client(None);
    let mut client = connect(&server, &config, "a.example");
    assert_eq!(get(&mut client, GET).unwrap(), "true a.example false");
    assert_eq!(client.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    // Many records in both directions.
    let body = "0123456789".repeat(100_000);
    let mut client = connect(&server, &config, "a.example");
    let head = format!(
        "POST /echo HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    assert!(get(&mut client, &(head + &body)).unwrap() == body);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn one_thread_reads_while_another_writes() {
    let authority = Authority::new();
    let shout = |request: &mut Request| -> io::Result<()> {
        let (mut body, responder) = request.split()?;
        let (send, pieces) = mpsc::channel::<Vec<u8>>();
        pirn::thread::scope(|scope| {
            let answer = scope.spawn(move || -> io::Result<()> {
                let mut answer = responder.respond(Response::ok())?;
                for piece in pieces {
                    answer.write_all(&piece.to_ascii_uppercase())?;
                    answer.flush()?;
                }
                answer.end()
            });
            let mut piece = [0; 64 * 1024];
            loop {
                match body.read(&mut piece)? {
                    0 => break,
                    count => send.send(piece[..count].to_vec()).unwrap(),
                }
            }
            drop(send);
            answer.join().unwrap()
        })
    };
    let limits = Limits::default().body(8 << 20);
    let server = Server::new().limits(limits).post("/shout", shout);
    let server = server.bind_tls("127.0.0.1:0", &tls(&authority.issue("a", "a.example")));
    let server = server.unwrap().start().unwrap();
    let config = authority.client(None);
    let ask = |length: usize| {
        let mut client = connect(&server, &config, "a.example");
        let head = "POST /shout HTTP/1.1\r\nhost: a\r\nconnection: close\r\n";
        write!(client, "{head}content-length: {length}\r\n\r\n").unwrap();
        client
    };
    // The server waits for the next word while it answers the one before.
    let mut client = ask(5 * 100);
    let mut answer = Vec::new();
    for round in 1..=100 {
        client.write_all(b"hello").unwrap();
        while answer.windows(5).filter(|it| it == b"HELLO").count() < round {
            let mut piece = [0; 1024];
            let count = client.read(&mut piece).unwrap();
            assert!(count > 0, "it ends early");
            answer.extend_from_slice(&piece[..count]);
        }
    }
    // The client sends 4 MB before it reads any of the answer, which the buffers of two sockets
    // cannot hold.
    let body = b"0123456789abcdef".repeat(1 << 18);
    let mut client = ask(body.len());
    client.write_all(&body).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    let letters = answer.iter().filter(|byte| matches!(byte, b'A'..=b'F'));
    assert!(letters.count() >= 6 << 18, "{} bytes", answer.len());
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn records_of_all_sizes_arrive_whole() {
    let authority = Authority::new();
    let server = server(&tls(&authority.issue("a", "a.example")));
    let mut client = connect(&server, &authority.client(None), "a.example");
    // Full records and small ones in turn, all on the way before the server reads the body.
    let pieces = (0..100).flat_map(|round| [16 * 1024, 1, 2 + round * 7 % 300]);
    let sizes = Vec::from_iter(pieces);
    let length = sizes.iter().sum::<usize>();
    let body = Vec::from_iter((0..length).map(|at| (at ^ at >> 8) as u8));
    let head = "POST /echo HTTP/1.1\r\nhost: a\r\nconnection: close\r\n";
    write!(client, "{head}content-length: {length}\r\n\r\n").unwrap();
    client.conn.set_buffer_limit(None);
    let mut rest = &body[..];
    for size in sizes {
        let (piece, after) = rest.split_at(size);
        client.conn.writer().write_all(piece).unwrap();
        rest = after;
    }
    client.flush().unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(&body), "{} bytes", answer.len());
}

#[test]
fn garbage_within_tls_ends_the_connection() {
    let authority = Authority::new();
    let server = server(&tls(&authority.issue("a", "a.example")));
    let mut client = connect(&server, &authority.client(None), "a.example");
    let head = "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    client.sock.write_all(&[0; 100]).unwrap();
    let error = client.read(&mut [0; 100]).unwrap_err();
    assert!(error.to_string().contains("alert"), "{error}");
    assert_eq!(client.sock.read(&mut [0; 100]).unwrap(), 0);
    assert_eq!(server.shutdown(), 0);
}

fn with_protocols(config: &ClientConfig, protocols: &[&str]) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.alpn_protocols = protocols
        .iter()
        .map(|one| one.as_bytes().to_vec())
        .collect();
    Arc::new(config)
}

#[test]
fn the_protocol_is_agreed_about() {
    let authority = Authority::new();
    let tls = tls(&authority.issue("a", "a.example"));
    let server = server(&tls);
    let old = Server::new().get("/", hello).http2(false);
    let old = old.bind_tls("127.0.0.1:0", &tls).unwrap().start().unwrap();
    let config = authority.client(None);
    for (server, offered, agreed) in [
        (&server, &["http/1.1", "h2"][..], Some("h2")),
        (&server, &["http/1.1"], Some("http/1.1")),
        (&server, &[], None),
        (&old, &["h2", "http/1.1"], Some("http/1.1")),
    ] {
        let mut client = connect(server, &with_protocols(&config, offered), "a.example");
        client.conn.complete_io(&mut client.sock).unwrap();
        assert_eq!(client.conn.alpn_protocol(), agreed.map(str::as_bytes));
        if agreed != Some("h2") {
            assert_eq!(get(&mut client, GET).unwrap(), "true a.example false");
        }
    }
    let mut client = connect(&old, &with_protocols(&config, &["h2"]), "a.example");
    let error = client.conn.complete_io(&mut client.sock).unwrap_err();
    assert!(
        error.to_string().contains("NoApplicationProtocol"),
        "{error}"
    );
    assert_eq!((server.shutdown(), old.shutdown()), (0, 0));
}

#[test]
fn http_2_is_spoken_by_tls() {
    let authority = Authority::new();
    let own = authority.issue("a", "a.example");
    let certificate = authority.issue("client", "client.example");
    let tls = Tls::builder()
        .certificate(&own[0], &own[1])
        .ask_for_client_certificates(authority.roots())
        .build()
        .unwrap();
    let server = server(&tls);
    let config = with_protocols(&authority.client(Some(&certificate)), &["h2"]);
    let socket = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    let name = ServerName::try_from("a.example").unwrap();
    let connecting =
        tokio_rustls::TlsConnector::from(config).connect(name, pirn::AsyncIo::new(socket).unwrap());
    let client = crate::http2::Client::on(pirn::block_on(connecting).unwrap());
    assert_eq!(client.get("/").text(), "true a.example true");
    let body = b"0123456789".repeat(100_000);
    assert!(client.post("/echo", &body).body == body);
    client.end().unwrap();
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn what_is_no_tls_is_refused() {
    let authority = Authority::new();
    let server = server(&tls(&authority.issue("a", "a.example")));
    let mut client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    client.write_all(GET.as_bytes()).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.first(), Some(&21), "an alert: {answer:?}");
    // A client that goes away in the middle of its handshake.
    TcpStream::connect(server.local_addr().unwrap())
        .unwrap()
        .write_all(&[22, 3, 1])
        .unwrap();
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn names_have_certificates_of_their_own() {
    let authority = Authority::new();
    let [a, b, c] = [("a", "a.example"), ("b", "*.b.example"), ("c", "c.example")]
        .map(|(file, name)| authority.issue(file, name));
    let tls = Tls::builder()
        .certificate(&a[0], &a[1])
        .certificate_for("*.B.example", &b[0], &b[1])
        .certificate_for("c.example", &c[0], &c[1])
        .build()
        .unwrap();
    let server = server(&tls);
    let config = authority.client(None);
    for name in ["a.example", "one.b.example", "c.example"] {
        let body = get(&mut connect(&server, &config, name), GET).unwrap();
        assert_eq!(body, format!("true {name} false"));
    }
    for name in ["b.example", "one.two.b.example", "d.example"] {
        let error = get(&mut connect(&server, &config, name), GET).unwrap_err();
        assert!(error.to_string().contains("certificate"), "{name}: {error}");
    }
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn clients_show_certificates() {
    let authority = Authority::new();
    let own = authority.issue("a", "a.example");
    let client = authority.issue("client", "client.example");
    let strangers = Authority::new();
    let stranger = strangers.issue("client", "client.example");
    let with = |certificate| authority.client(certificate);
    let builder = || Tls::builder().certificate(&own[0], &own[1]);
    let asking = builder()
        .ask_for_client_certificates(authority.roots())
        .build()
        .unwrap();
    let needing = builder()
        .require_client_certificates(authority.roots())
        .build()
        .unwrap();
    for (tls, without) in [(asking, true), (needing, false)] {
        let server = server(&tls);
        let ask = |config| get(&mut connect(&server, &config, "a.example"), GET);
        assert_eq!(ask(with(Some(&client))).unwrap(), "true a.example true");
        assert_eq!(ask(with(None)).is_ok(), without);
        assert!(ask(with(Some(&stranger))).is_err());
        assert_eq!(server.shutdown(), 0);
    }
}

#[test]
fn certificates_are_read_again() {
    let authority = Authority::new();
    let own = authority.issue("a", "a.example");
    let tls = tls(&own);
    let server = server(&tls);
    let config = authority.client(None);
    let ask = |name| get(&mut connect(&server, &config, name), GET);
    ask("a.example").unwrap();
    authority.issue("a", "b.example");
    tls.reload().unwrap();
    ask("b.example").unwrap();
    assert!(ask("a.example").is_err());
    fs::write(&own[1], "no key").unwrap();
    assert!(tls.reload().is_err());
    ask("b.example").unwrap();
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn files_that_are_no_certificates_are_named() {
    let authority = Authority::new();
    let [certificate, key] = authority.issue("a", "a.example");
    let [_, other] = authority.issue("b", "b.example");
    let error =
        |certificate: &Path, key: &Path| Tls::from_files(certificate, key).unwrap_err().to_string();
    assert!(error(Path::new("/nowhere"), &key).contains("/nowhere: No such file"));
    assert!(error(&key, &key).contains("there is no certificate in it"));
    assert!(error(&certificate, &certificate).contains("a.pem"));
    assert!(error(&certificate, &other).contains("b.key"));
    let none = Tls::builder().build().unwrap_err().to_string();
    assert!(none.contains("TlsBuilder::certificate"), "{none}");
}

#[test]
fn tls_is_spoken_by_unix_sockets_and_beside_plain_listeners() {
    let authority = Authority::new();
    let tls = tls(&authority.issue("a", "a.example"));
    let path = authority.folder.path().join("socket");
    let server = Server::new()
        .get("/", hello)
        .listen(Listener::unix(&path).unwrap().tls(&tls))
        .and(Listener::tcp("127.0.0.1:0").unwrap())
        .start()
        .unwrap();
    let name = ServerName::try_from("a.example").unwrap();
    let session = ClientConnection::new(authority.client(None), name).unwrap();
    let socket = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let mut client = StreamOwned::new(session, socket);
    client.write_all(GET.as_bytes()).unwrap();
    let mut all = String::new();
    client.read_to_string(&mut all).unwrap();
    assert!(all.ends_with("true a.example false"), "{all}");
    let mut plain = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    plain.write_all(GET.as_bytes()).unwrap();
    let mut all = String::new();
    plain.read_to_string(&mut all).unwrap();
    assert!(all.ends_with("false  false"), "{all}");
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn another_protocol_may_be_spoken_by_tls() {
    let authority = Authority::new();
    let tls = tls(&authority.issue("a", "localhost"));
    let server = pirn_http::tcp_acceptor(|mut connection| {
        assert!(connection.is_secure());
        // Longer than the handshake may take.
        pirn::thread::sleep_interruptible(patient(Duration::from_millis(2500))).unwrap();
        let mut all = [0; 5];
        connection.read_exact(&mut all)?;
        connection.write_all(&all.map(|byte| byte.to_ascii_uppercase()))
    });
    let timeouts = Timeouts::default().handshake(patient(Duration::from_secs(2)));
    let server = server.timeouts(timeouts).bind_tls("127.0.0.1:0", &tls);
    let server = server.unwrap().start().unwrap();
    // It asks for HTTP, which is not offered; it is not told so.
    let mut client = connect(&server, &authority.client(None), "localhost");
    client.write_all(b"hello").unwrap();
    let mut all = String::new();
    client.read_to_string(&mut all).unwrap();
    assert_eq!(all, "HELLO");
    assert_eq!(client.conn.alpn_protocol(), None);
    drop(client);
    assert_eq!(server.shutdown(), 0);
}
