//! Clients of HTTP/2: several requests at the same time on one connection, with TLS and without;
//! some of them are withdrawn.

use crate::Day;
use crate::server::connect;
use crate::wire::Pattern;
use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{RecvStream, SendStream};
use pirn::{AsyncIo, block_on, thread};
use pirn_http::http::Request;
use std::future::poll_fn;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

/// One connection.
pub(crate) fn clients(day: &mut Day) {
    let has_tls = day.below(2) == 0;
    let server = &day.world.server;
    if !has_tls {
        let io = AsyncIo::new(server.connect()).unwrap();
        return requests(day, io);
    }
    let mut trust = server.trust.clone();
    trust.alpn_protocols = vec![b"h2".to_vec()];
    let connector = TlsConnector::from(Arc::new(trust));
    let io = AsyncIo::new(connect(server.tls)).unwrap();
    let name = "localhost".try_into().unwrap();
    let io = block_on(connector.connect(name, io)).expect("a handshake");
    requests(day, io);
}

fn requests(day: &mut Day, io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let (sender, connection) = block_on(Builder::new().handshake(io)).expect("a connection");
    let driver = thread::spawn(move || block_on(connection));
    let streams = Vec::from_iter((0..4).map(|_| {
        let sender = sender.clone();
        let mut day = Day {
            world: Arc::clone(&day.world),
            random: day.below(u64::MAX) | 1,
        };
        thread::spawn(move || {
            for _ in 0..=day.below(10) {
                request(&mut day, &sender);
            }
        })
    }));
    for stream in streams {
        stream.join().expect("what must be");
    }
    drop(sender);
    driver.join().unwrap().expect("a clean end");
}

fn request(day: &mut Day, sender: &SendRequest<Bytes>) {
    let (number, length) = (day.number(), day.length());
    let mut sender = block_on(sender.clone().ready()).expect("a connection");
    let (path, body, expected) = match day.below(4) {
        0 => (format!("/echo/{number}"), None, number.to_string().into()),
        1 => {
            let (body, said) = (Pattern::bytes(number, length), format!("{number} {length}"));
            (format!("/upload/{number}"), Some(body), said.into_bytes())
        }
        2 => {
            let body = Pattern::bytes(number, length);
            (format!("/pushed/{number}/{length}"), None, body)
        }
        _ => return withdrawn(day, &mut sender, number),
    };
    let request = match &body {
        None => Request::get(format!("http://a{path}")),
        Some(_) => Request::post(format!("http://a{path}")),
    };
    let request = request.body(()).unwrap();
    let (answer, mut stream) = sender.send_request(request, body.is_none()).unwrap();
    if let Some(body) = body {
        send(&mut stream, body.into());
    }
    let (head, stream) = block_on(answer).expect("an answer").into_parts();
    assert_eq!(head.status, 200, "{path}");
    assert!(receive(stream) == expected, "not my answer: {path}");
    day.checked("http2");
}

/// A request whose client does not wait for the end of its answer, or for the answer.
fn withdrawn(day: &mut Day, sender: &mut SendRequest<Bytes>, number: u64) {
    let path = match day.below(2) {
        0 => format!("/wait/{number}"),
        _ => format!("/download/{number}/900000"),
    };
    let request = Request::get(format!("http://a{path}")).body(()).unwrap();
    let (answer, _) = sender.send_request(request, true).unwrap();
    day.sleep(5);
    drop(answer);
    day.checked("reset");
}

fn send(stream: &mut SendStream<Bytes>, mut bytes: Bytes) {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let room = match stream.capacity() {
            0 => block_on(poll_fn(|context| stream.poll_capacity(context))),
            room => Some(Ok(room)),
        };
        let room = room.expect("an open stream").expect("an open stream");
        let piece = bytes.split_to(room.min(bytes.len()));
        stream.send_data(piece, false).expect("an open stream");
    }
    stream.send_data(bytes, true).expect("an open stream");
}

fn receive(mut stream: RecvStream) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(piece) = block_on(stream.data()) {
        let piece = piece.expect("a body");
        stream.flow_control().release_capacity(piece.len()).unwrap();
        body.extend_from_slice(&piece);
    }
    body
}
