//! Compression: what is compressed, that it can be read again, and that flushes arrive.

use pirn_http::{
    Answer, Body, Client, Compression, Method, Request, Response, Server, Status, header,
};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, mpsc};

fn long() -> String {
    Vec::from_iter((0..20_000).map(|number| number.to_string())).join(" ")
}

fn client() -> Client {
    let text = |tag: &'static str| move || Response::ok().text(long()).header(header::ETAG, tag);
    Server::new()
        .get("/bytes", text("\"a\""))
        .get("/weak", text("W/\"a\""))
        .get("/reader", || {
            Response::ok()
                .content_type("application/json")
                .body(Body::from_reader(io::Cursor::new(long())))
        })
        .get("/pushed", |request: &mut Request| -> io::Result<()> {
            let mut body = request.respond(Response::ok().text(long()))?;
            for piece in long().as_bytes().chunks(1000) {
                body.write_all(piece)?;
            }
            Ok(())
        })
        .get("/half", |request: &mut Request| -> io::Result<()> {
            request
                .respond(Response::ok().content_type("text/plain"))?
                .write_all(b"half")?;
            Err(io::Error::other("on purpose"))
        })
        .get("/cut", || {
            let body = Body::from_sized_reader(&b"half of it"[..], 2000);
            Response::ok().content_type("text/plain").body(body)
        })
        .get("/short", || "short")
        .get("/image", || {
            Response::ok().text(long()).content_type("image/png")
        })
        .get("/part", || (Status::PARTIAL_CONTENT, long()))
        .get("/coded", || {
            Response::ok()
                .text(long())
                .header(header::CONTENT_ENCODING, "x")
        })
        .get("/secret", || {
            Response::ok()
                .text(long())
                .header(header::CACHE_CONTROL, "private, no-transform")
        })
        .with(Compression::new())
        .client()
}

fn get(client: &Client, path: &str, accepted: &str) -> Answer {
    client.request(Method::GET, path, &[("accept-encoding", accepted)], b"")
}

fn decoded(answer: &Answer) -> String {
    let mut text = String::new();
    let body = &answer.body[..];
    match answer
        .headers
        .get("content-encoding")
        .map(|value| value.to_str().unwrap())
    {
        Some("gzip") => flate2::read::GzDecoder::new(body).read_to_string(&mut text),
        Some("br") => brotli::Decompressor::new(body, 4096).read_to_string(&mut text),
        Some("zstd") => zstd::stream::read::Decoder::new(body)
            .unwrap()
            .read_to_string(&mut text),
        other => panic!("{other:?}"),
    }
    .unwrap();
    text
}

#[test]
fn bodies_of_all_kinds_are_compressed_in_all_codings() {
    let client = client();
    for path in ["/bytes", "/reader", "/pushed"] {
        for coding in ["gzip", "br", "zstd"] {
            let answer = get(&client, path, coding);
            assert_eq!(answer.headers["content-encoding"], coding, "{path}");
            assert_eq!(answer.headers["vary"], "accept-encoding");
            assert!(answer.body.len() < long().len() / 2, "{path} {coding}");
            assert!(decoded(&answer) == long(), "{path} {coding}");
        }
        let plain = get(&client, path, "identity");
        assert!(plain.text() == long());
        assert_eq!(plain.headers["vary"], "accept-encoding");
    }
}

#[test]
fn a_tag_of_compressed_bytes_is_weak() {
    let client = client();
    assert_eq!(get(&client, "/bytes", "gzip").headers["etag"], "W/\"a\"");
    assert_eq!(get(&client, "/weak", "gzip").headers["etag"], "W/\"a\"");
    assert_eq!(get(&client, "/bytes", "").headers["etag"], "\"a\"");
}

#[test]
fn what_does_not_gain_is_left_alone() {
    let client = client();
    for path in ["/short", "/image", "/part", "/secret"] {
        let answer = get(&client, path, "gzip");
        assert!(!answer.headers.contains_key("content-encoding"), "{path}");
    }
    let coded = get(&client, "/coded", "gzip");
    assert_eq!(coded.headers["content-encoding"], "x");
    assert!(coded.text() == long());
}

#[test]
fn a_body_of_no_bytes_has_no_coding() {
    let server = Server::new()
        .get("/", || "")
        .with(Compression::new().minimum(0));
    let answer = get(&server.client(), "/", "gzip");
    assert!(!answer.headers.contains_key("content-encoding"));
    assert_eq!(answer.body, b"");
}

#[test]
fn a_response_to_head_has_the_fields_of_that_to_get() {
    let client = client();
    let fields = [("accept-encoding", "gzip")];
    let head = client.request(Method::HEAD, "/bytes", &fields, b"");
    let get = get(&client, "/bytes", "gzip");
    assert_eq!(
        head.headers["content-length"],
        get.headers["content-length"]
    );
    assert_eq!(head.body, b"");
}

#[test]
fn a_body_that_is_cut_has_no_end() {
    for path in ["/half", "/cut"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n\r\n");
        let all = client().send(request.as_bytes());
        assert!(all.starts_with(b"HTTP/1.1 200"), "{path}");
        assert!(!all.ends_with(b"0\r\n\r\n"), "{path}");
    }
}

#[test]
fn a_body_that_is_cut_has_no_end_in_its_coding_either() {
    // To HTTP/1.0 a body ends where the connection does: only the coding shows that it is cut.
    let all = client().send(b"GET /half HTTP/1.0\r\naccept-encoding: gzip\r\n\r\n");
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let mut decoder = flate2::read::GzDecoder::new(&all[end + 4..]);
    let error = decoder.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn what_is_flushed_arrives_before_there_is_more() {
    for coding in ["gzip", "br", "zstd"] {
        let (go, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let server = Server::new().get("/", move |request: &mut Request| -> io::Result<()> {
            let mut body = request.respond(Response::ok().content_type("text/plain"))?;
            body.write_all(b"first ")?;
            body.flush()?;
            wait.lock().unwrap().recv().unwrap();
            body.write_all(b"second")
        });
        let bound = server.with(Compression::new()).bind("127.0.0.1:0").unwrap();
        let running = bound.start().unwrap();
        let mut stream = TcpStream::connect(running.local_addr().unwrap()).unwrap();
        // A flush that gets lost fails the test, in place of hanging it.
        let patience = Some(pirn_testing::patient(std::time::Duration::from_secs(30)));
        stream.set_read_timeout(patience).unwrap();
        let head = format!("GET / HTTP/1.0\r\naccept-encoding: {coding}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut byte = [0];
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let mut first = [0; 6];
        let mut decoder: Box<dyn Read> = match coding {
            "gzip" => Box::new(flate2::read::GzDecoder::new(&stream)),
            "br" => Box::new(brotli::Decompressor::new(&stream, 4096)),
            _ => Box::new(zstd::stream::read::Decoder::new(&stream).unwrap()),
        };
        decoder.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"first ");
        go.send(()).unwrap();
        let mut rest = String::new();
        decoder.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "second");
        drop(decoder);
        running.shutdown();
    }
}

#[test]
fn digests_of_what_is_not_sent_are_left_out() {
    let digests = ["content-digest", "content-md5", "digest", "repr-digest"];
    let client = Server::new()
        .get("/", move || {
            let text = Response::ok().text(long());
            digests
                .iter()
                .fold(text, |response, name| response.header(*name, "x"))
        })
        .with(Compression::new())
        .client();
    let has = |coding: &str| {
        let fields = [("accept-encoding", coding)];
        let answer = client.request(Method::GET, "/", &fields, b"");
        digests.map(|name| answer.headers.contains_key(name))
    };
    assert_eq!(has("gzip"), [false; 4]);
    assert_eq!(has("identity"), [true; 4]);
}
