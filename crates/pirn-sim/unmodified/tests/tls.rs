//! `rustls`, with a certificate from `rcgen`.

use pirn_sim::net::{self, node};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use rustls::{ServerConfig, ServerConnection, Stream};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// A certificate and its key.
fn identity() -> &'static (CertificateDer<'static>, Vec<u8>) {
    static IDENTITY: OnceLock<(CertificateDer<'static>, Vec<u8>)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["server".to_owned()]).unwrap();
        (made.cert.der().clone(), made.signing_key.serialize_der())
    })
}

fn serve() {
    let (certificate, key) = identity();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.clone()],
            PrivateKeyDer::try_from(key.clone()).unwrap(),
        )
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("[::]:443").unwrap();
    for stream in listener.incoming() {
        let (mut stream, config) = (stream.unwrap(), Arc::clone(&config));
        thread::spawn(move || {
            let mut session = ServerConnection::new(config).unwrap();
            let mut stream = Stream::new(&mut session, &mut stream);
            let mut text = [0; 8];
            while stream.read_exact(&mut text).is_ok() {
                stream.write_all(&text).unwrap();
            }
        });
    }
}

#[test]
fn clients_check_the_certificate_and_talk() {
    identity();
    pirn_sim_unmodified::check("rustls", 50, || {
        net::short_transfers(0.2);
        node("server", serve);
        thread::sleep(Duration::from_secs(1));
        let mut roots = RootCertStore::empty();
        roots.add(identity().0.clone()).unwrap();
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let config = Arc::new(config);
        let clients: Vec<_> = (0..2)
            .map(|_| {
                let config = Arc::clone(&config);
                thread::spawn(move || {
                    let name = ServerName::try_from("server").unwrap();
                    let mut session = ClientConnection::new(config, name).unwrap();
                    let mut stream = TcpStream::connect("server:443").unwrap();
                    let mut stream = Stream::new(&mut session, &mut stream);
                    for _ in 0..3 {
                        stream.write_all(b"question").unwrap();
                        let mut text = [0; 8];
                        stream.read_exact(&mut text).unwrap();
                        assert_eq!(&text, b"question");
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|it| it.join().unwrap());
    });
}
