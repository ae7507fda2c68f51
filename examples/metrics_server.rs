//! A page of metrics for Prometheus, next to the server that it is about: a thread per connection,
//! and plain HTTP without a library.
//!
//!     cargo run --example metrics_server & curl http://127.0.0.1:9464/metrics
use pirn::thread;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// How long a client may take to ask.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers one request.
fn answer(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    // The rest of the head is of no interest, but has to be read: closing a connection with unread
    // data would make the client lose the answer.
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let (status, page) = match request.split(' ').nth(1) {
        Some("/metrics") => ("200 OK", pirn::metrics::snapshot().to_prometheus()),
        _ => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
    };
    write!(
        &*stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    )
}

#[pirn::main]
fn main() -> io::Result<()> {
    // The address that a program gives, for tests; else the port that OpenTelemetry's exporter has.
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9464".into());
    let listener = TcpListener::bind(address)?;
    println!("http://{}/metrics", listener.local_addr()?);
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || answer(&stream));
    }
    Ok(())
}
