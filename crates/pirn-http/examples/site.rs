//! A small site: files, a form with uploads, events, metrics, an access log, compression.
//!
//! `cargo run --release -p pirn-http --features gzip --example site [ADDRESS [FOLDER [PEM KEY]]]`
//!
//! With a certificate and its key, in PEM, it speaks HTTPS.

use pirn_http::files::Files;
use pirn_http::observe::{AccessLog, Metrics, Readiness, request_ids};
use pirn_http::{Compression, Event, Request, Server, Tls, limit_concurrency};
use std::io;
use std::time::Duration;

/// Receives a form, and says what was in it.
fn upload(request: &mut Request) -> io::Result<String> {
    request.allow_body(1 << 30);
    let mut form = request.multipart()?;
    let mut found = String::new();
    while let Some(mut part) = form.next_part()? {
        let bytes = io::copy(&mut part, &mut io::sink())?;
        let file = part.file_name().unwrap_or("no file");
        found += &format!("{}: {file}, {bytes} bytes\n", part.name());
    }
    Ok(found)
}

/// Counts seconds, until the client is gone.
fn seconds(request: &mut Request) -> io::Result<()> {
    let mut events = request.events()?;
    for second in 0.. {
        events.send(&Event::new(second.to_string()))?;
        pirn::thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

#[pirn::main]
fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:8080".into());
    let folder = arguments.next().unwrap_or(".".into());
    let metrics = Metrics::new();
    let server = Server::new()
        .files("/", Files::new(folder)?.precompressed())
        .post("/upload", upload)
        .get("/seconds", seconds)
        .get("/metrics", metrics.handler())
        .get("/ready", Readiness::new(true).handler())
        .with(Compression::new().layer())
        .with(limit_concurrency(10_000))
        .with(AccessLog::new(io::stdout()).layer())
        .with(request_ids())
        .with(metrics.layer());
    match (arguments.next(), arguments.next()) {
        (Some(certificate), Some(key)) => {
            let tls = Tls::from_files(certificate, key)?;
            server.bind_tls(address, &tls)?.serve()
        }
        _ => server.bind(address)?.serve(),
    }
}
