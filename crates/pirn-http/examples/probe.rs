//! The server that `ci/http-tools` sends other people's clients, load and attacks to.
//!
//! `cargo run --release -p pirn-http --example probe -- [NAME=VALUE]...`
//!
//! | argument | is |
//! |---|---|
//! | `tcp=ADDRESS` | where it listens; 127.0.0.1:8080 |
//! | `unix=PATH` | a Unix socket to listen on as well |
//! | `tls=ADDRESS`, `certificate=PEM`, `key=PEM` | where it listens for clients that speak TLS |
//! | `folder=PATH` | what `/probe/files` serves; the present folder |
//! | `log=PATH` | a file to which each echoed request is appended, one line of JSON |
//! | `seconds=N` | all time limits, in place of the crate's |
//!
//! Below `/probe` there are files, copies of bodies, streams and WebSockets. Other targets, by any
//! method, are answered with what the server understands of the request.

use pirn_http::files::Files;
use pirn_http::{
    Body, Compression, Error, Handler, IntoResponse, Json, Limits, Listener, Request, Response,
    Server, Status, Timeouts, Tls, WebSocket,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Duration;

/// How many bytes are copied at once.
const PIECE: usize = 16 * 1024;
/// The largest body that is uploaded.
const UPLOADED: u64 = 4 << 30;

/// Returns what is understood of a request whose body has been read, or has failed.
fn understood(request: &mut Request) -> (Value, io::Result<()>) {
    let (mut length, mut low, mut high) = (0_u64, 1, 0);
    let mut start = Vec::new();
    let mut piece = vec![0; PIECE];
    let result = loop {
        match request.read(&mut piece) {
            Ok(0) => break Ok(()),
            Ok(count) => {
                // Adler-32, which Python has as well.
                for &byte in &piece[..count] {
                    low = (low + u32::from(byte)) % 65521;
                    high = (high + low) % 65521;
                }
                length += count as u64;
                let room = 64_usize.saturating_sub(start.len());
                start.extend_from_slice(&piece[..count.min(room)]);
            }
            Err(error) => break Err(error),
        }
    };
    let trailers: HashMap<_, _> = request
        .trailers()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())))
        .collect();
    let value = json!({
        "method": request.method.as_str(),
        "target": request.uri.to_string(),
        "host": request.header("host"),
        "meant": request.header("x-meant"),
        "length": length,
        "sum": high << 16 | low,
        "start": String::from_utf8_lossy(&start),
        "trailers": trailers,
        "whole": result.is_ok(),
    });
    (value, result)
}

/// Answers with what is understood of the request, and logs it.
fn echo(request: &mut Request, log: Option<&File>) -> Response {
    let (value, result) = understood(request);
    if let Some(mut log) = log {
        let line = format!("{value}\n"); // one write, so that lines stay whole
        log.write_all(line.as_bytes())
            .expect("the log takes a line");
    }
    match result {
        Ok(()) => Json(value).into_response(),
        Err(error) => error.into_response(),
    }
}

/// Has the request read by `understood`, however large it is.
fn upload(request: &mut Request) -> io::Result<Json<Value>> {
    request.allow_body(UPLOADED);
    let (value, result) = understood(request);
    result.map(|()| Json(value))
}

/// Sends ten lines, one after the other.
fn lines(request: &mut Request) -> io::Result<()> {
    let mut body = request.respond(Response::ok().content_type("text/plain"))?;
    for line in 0..10 {
        writeln!(body, "line {line}")?;
        body.flush()?;
        pirn::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Returns a body of as many bytes as the path says.
fn large(request: &mut Request) -> Result<Body, Error> {
    let bytes = request.param("bytes")?;
    Ok(Body::from_sized_reader(io::repeat(b'x'), bytes))
}

/// Returns a body in chunks, of as many bytes as the path says.
fn stream(request: &mut Request) -> Result<Body, Error> {
    let bytes = request.param("bytes")?;
    Ok(Body::from_reader(io::repeat(b'x').take(bytes)))
}

fn web_socket(mut socket: WebSocket) -> io::Result<()> {
    while let Some(message) = socket.read()? {
        socket.send(message)?;
    }
    Ok(())
}

fn timeouts(seconds: Option<&String>) -> Timeouts {
    let timeouts = Timeouts::default().grace(Duration::from_secs(5));
    let Some(seconds) = seconds else {
        return timeouts;
    };
    let limit = Duration::from_secs(seconds.parse().expect("seconds is a number"));
    timeouts
        .handshake(limit)
        .head(limit)
        .idle(limit)
        .body(limit, 500)
}

#[pirn::main]
fn main() -> io::Result<()> {
    let given: HashMap<String, String> = std::env::args()
        .skip(1)
        .filter_map(|one| {
            one.split_once('=')
                .map(|(name, value)| (name.into(), value.into()))
        })
        .collect();
    let get = |name: &str, default: &str| given.get(name).map_or(default, |value| value).to_owned();
    let log = given
        .get("log")
        .map(|path| File::options().append(true).create(true).open(path));
    let log = log.transpose()?;
    let mut server = Server::new()
        .files("/probe/files", Files::new(get("folder", "."))?)
        .get("/probe/hello", || "Hello, World!")
        .get("/probe/lines", lines)
        .get("/probe/large/{bytes}", large)
        .get("/probe/stream/{bytes}", stream)
        .any("/probe/upload", upload)
        .post("/probe/copy", Request::bytes)
        .post("/probe/refuse", || Status::PAYLOAD_TOO_LARGE)
        .websocket("/probe/socket", web_socket)
        .with(Compression::new())
        .with(
            move |request: &mut Request, inner: &Handler| match request.uri.path() {
                path if path.starts_with("/probe/") => inner(request),
                _ => echo(request, log.as_ref()),
            },
        )
        .limits(Limits::default().body(32 << 20))
        .timeouts(timeouts(given.get("seconds")))
        .half_close(true) // The same bytes are sent to all servers, and then an end.
        .bind(get("tcp", "127.0.0.1:8080"))?;
    if let Some(path) = given.get("unix") {
        server = server.and(Listener::unix(path)?);
    }
    if let Some(address) = given.get("tls") {
        let tls = Tls::from_files(get("certificate", ""), get("key", ""))?;
        server = server.and(Listener::tcp(address)?.tls(&tls));
    }
    server.serve()
}
