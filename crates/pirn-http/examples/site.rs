//! A small site: files, metrics, an access log, compression.
//!
//! `cargo run --release -p pirn-http --example site [ADDRESS [FOLDER [PEM KEY]]]`
//!
//! With a certificate and its key, in PEM, it speaks HTTPS.

use pirn_http::files::Files;
use pirn_http::observe::{AccessLog, Metrics, Readiness, request_ids};
use pirn_http::{Compression, Server, Tls, limit_concurrency};
use std::io;

#[pirn::main]
fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:8080".into());
    let folder = arguments.next().unwrap_or(".".into());
    let metrics = Metrics::new();
    let server = Server::new()
        .files("/", Files::new(folder)?.precompressed())
        .get("/metrics", metrics.handler())
        .get("/ready", Readiness::new(true).handler())
        .with(Compression::new())
        .with(limit_concurrency(10_000))
        .with(AccessLog::new(io::stdout()))
        .with(request_ids())
        .with(metrics.clone());
    match (arguments.next(), arguments.next()) {
        (Some(certificate), Some(key)) => {
            let tls = Tls::from_files(certificate, key)?;
            server.bind_tls(address, &tls)?.serve()
        }
        _ => server.bind(address)?.serve(),
    }
}
