//! What streams is on its way before anything is waited for: each source, in both versions, with
//! each coding.

use super::http2::{Client, next_piece, send};
use ::http::Request as Asked;
use bytes::Bytes;
use pirn::{block_on, thread};
use pirn_http::{Body, Compression, Event, IntoResponse, Request, Response, Running, Server};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// For what the client confirms.
type Gate = Arc<Mutex<mpsc::Receiver<()>>>;

fn wait(gate: &Gate) {
    gate.lock().unwrap().recv().unwrap();
}

/// A reader that gives its pieces, and waits for the client before each that is empty.
struct Pieces(Gate, &'static [&'static str]);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some((&(mut piece), mut rest)) = self.1.split_first() else {
            return Ok(0);
        };
        if piece.is_empty() {
            wait(&self.0);
            (piece, rest) = (rest[0], &rest[1..]);
        }
        self.1 = rest;
        buffer[..piece.len()].copy_from_slice(piece.as_bytes());
        Ok(piece.len())
    }
}

fn text() -> Response {
    Response::ok().content_type("text/plain")
}

type Source = fn(&mut Request, Gate) -> io::Result<Response>;

/// Each answers `first` and `second`, and waits for the client between them; `head`: before both.
const SOURCES: [(&str, Source); 7] = [
    ("head", |_, gate| {
        let pieces = Pieces(gate, &["", "first", "second"]);
        Ok(text().body(Body::from_reader(pieces)))
    }),
    ("reader", |_, gate| {
        let pieces = Pieces(gate, &["first", "", "second"]);
        Ok(text().body(Body::from_reader(pieces)))
    }),
    ("reader of known length", |_, gate| {
        let pieces = Pieces(gate, &["first", "", "second"]);
        Ok(text().body(Body::from_sized_reader(pieces, 11)))
    }),
    ("writer", |request, gate| {
        let mut body = request.respond(text())?;
        body.write_all(b"first")?;
        body.flush()?;
        wait(&gate);
        body.write_all(b"second")?;
        Ok(().into_response())
    }),
    ("writer that reads", |request, _| {
        let mut body = request.respond(text())?;
        body.write_all(b"first")?;
        body.read_exact(&mut [0])?;
        body.write_all(b"second")?;
        Ok(().into_response())
    }),
    ("events", |request, gate| {
        let mut events = request.events()?;
        events.send(&Event::new("first"))?;
        wait(&gate);
        events.send(&Event::new("second"))?;
        Ok(().into_response())
    }),
    ("writer beside a reader", |request, _| {
        let (mut body, responder) = request.split()?;
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            let answer = scope.spawn(move || {
                let mut answer = responder.respond(text())?;
                answer.write_all(b"first")?;
                answer.flush()?;
                told.recv().unwrap();
                answer.write_all(b"second")?;
                answer.end()
            });
            body.read_exact(&mut [0])?;
            tell.send(()).unwrap();
            answer.join().unwrap()
        })?;
        Ok(().into_response())
    }),
];

/// Returns what of a body can be read of these bytes of it.
fn decoded(coding: &str, coded: &[u8]) -> String {
    let mut text = Vec::new();
    match coding {
        "gzip" => {
            let mut decoder = flate2::write::GzDecoder::new(text);
            decoder.write_all(coded).unwrap();
            decoder.flush().unwrap();
            text = std::mem::take(decoder.get_mut());
        }
        "br" => {
            let mut decoder = brotli::DecompressorWriter::new(text, 4096);
            decoder.write_all(coded).unwrap();
            decoder.flush().unwrap();
            text = std::mem::take(decoder.get_mut());
        }
        "zstd" => {
            let mut decoder = zstd::stream::write::Decoder::new(text).unwrap();
            decoder.write_all(coded).unwrap();
            decoder.flush().unwrap();
            text = std::mem::take(decoder.get_mut());
        }
        _ => text.extend_from_slice(coded),
    }
    String::from_utf8(text).unwrap()
}

/// An answer whose head has come.
trait Coming {
    /// Waits for more of the body; `None`: it is over.
    fn more(&mut self) -> Option<Vec<u8>>;
    /// Sends the byte of the request's body.
    fn confirm(&mut self);
}

struct H1(TcpStream);

impl H1 {
    fn ask(server: &Running, coding: &str) -> H1 {
        let mut stream = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let head = format!("accept-encoding: {coding}\r\ncontent-length: 1\r\n");
        write!(
            stream,
            "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{head}\r\n"
        )
        .unwrap();
        let mut client = H1(stream);
        let head = client.until(b"\r\n\r\n");
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let is_coded = head.contains(&format!("content-encoding: {coding}\r\n"));
        assert_eq!(is_coded, coding != "identity", "{head}");
        if head.contains("content-length: 11\r\n") {
            return client;
        }
        assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
        client
    }

    fn until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        while !all.ends_with(end) {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            all.push(byte[0]);
        }
        all
    }
}

/// Returns the data of a body's chunks, as far as they have come; `bytes` if the body is not in
/// chunks.
fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    if bytes.starts_with(b"first") {
        return bytes.to_vec();
    }
    let mut data = Vec::new();
    while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
        let line = std::str::from_utf8(&bytes[..end]).unwrap().trim();
        let size = usize::from_str_radix(line, 16).unwrap();
        let rest = &bytes[end + 1..];
        data.extend_from_slice(&rest[..size.min(rest.len())]);
        bytes = rest.get(size + 2..).unwrap_or_default();
    }
    data
}

impl Coming for H1 {
    fn more(&mut self) -> Option<Vec<u8>> {
        let mut piece = [0; 4096];
        match self.0.read(&mut piece).unwrap() {
            0 => None,
            count => Some(piece[..count].to_vec()),
        }
    }

    fn confirm(&mut self) {
        self.0.write_all(b"x").unwrap();
    }
}

/// With the client: if it were dropped, the connection would end.
struct H2(
    h2::RecvStream,
    h2::SendStream<Bytes>,
    #[expect(dead_code)] Client,
);

impl H2 {
    fn ask(server: &Running, coding: &str) -> H2 {
        let client = Client::connect(server);
        let asked = Asked::post("http://a/").header("accept-encoding", coding);
        let (answer, sender) = client.begin(asked.body(()).unwrap(), false);
        let answer = block_on(answer).unwrap();
        assert_eq!(answer.status(), 200);
        let is_coded = answer.headers().contains_key("content-encoding");
        assert_eq!(is_coded, coding != "identity");
        H2(answer.into_body(), sender, client)
    }
}

impl Coming for H2 {
    fn more(&mut self) -> Option<Vec<u8>> {
        next_piece(&mut self.0).unwrap().map(|piece| piece.to_vec())
    }

    fn confirm(&mut self) {
        send(&mut self.1, Bytes::from_static(b"x"), true);
    }
}

/// Reads an answer; confirms that its first piece, or its head, has come.
fn read(mut answer: impl Coming, coding: &str, is_chunked: bool, is_head: bool, open: &dyn Fn()) {
    let mut bytes = Vec::new();
    let mut has_confirmed = false;
    loop {
        let data = match is_chunked {
            true => unchunked(&bytes),
            false => bytes.clone(),
        };
        let text = decoded(coding, &data);
        if !has_confirmed && (is_head || text.contains("first")) {
            assert!(!text.contains("second"), "it does not wait: {text}");
            answer.confirm();
            open();
            has_confirmed = true;
        }
        match answer.more() {
            Some(piece) => bytes.extend_from_slice(&piece),
            None => return assert!(text.contains("second"), "{text}"),
        }
    }
}

/// Panics if what is done takes so long that it hangs.
fn in_time(what: String, act: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let acting = thread::spawn(move || {
        act();
        done.send(()).unwrap();
    });
    match is_done.recv_timeout(pirn_testing::patient(Duration::from_secs(60))) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: something waits for ever"),
        _ => acting.join().unwrap_or_else(|_| panic!("{what}")),
    }
}

#[test]
fn the_first_piece_is_sent_before_the_next_is_waited_for() {
    for (name, source) in SOURCES {
        for coding in ["identity", "gzip", "br", "zstd"] {
            for is_h2 in [false, true] {
                let (opened, gate) = mpsc::channel();
                let gate = Arc::new(Mutex::new(gate));
                let server = Server::new()
                    .post("/", move |request: &mut Request| {
                        source(request, Arc::clone(&gate))
                    })
                    .with(Compression::new().minimum(0));
                let server = server.bind("127.0.0.1:0").unwrap().start().unwrap();
                let what = format!("{name}, {coding}, HTTP/2: {is_h2}");
                in_time(what, move || {
                    let open = || {
                        let _ = opened.send(()); // One source reads in place of that.
                    };
                    match is_h2 {
                        true => read(
                            H2::ask(&server, coding),
                            coding,
                            false,
                            name == "head",
                            &open,
                        ),
                        false => read(
                            H1::ask(&server, coding),
                            coding,
                            true,
                            name == "head",
                            &open,
                        ),
                    }
                    server.shutdown();
                });
            }
        }
    }
}
