//! Many streams at once, and bodies that are larger than windows.

use super::{Client, get, next_piece, receive, send, served};
use ::http::Request as Asked;
use bytes::Bytes;
use h2::client::Builder;
use pirn::{AsyncIo, block_on, thread};
use pirn_http::{Limits, Request, Response, Running, Server, Timeouts};
use pirn_testing::patient;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

const MEBIBYTE: usize = 1 << 20;

/// Sends each piece of the body as it comes.
fn echo(request: &mut Request) -> io::Result<()> {
    let mut both = request.respond(Response::ok())?;
    let mut piece = [0; 4096];
    loop {
        match both.read(&mut piece)? {
            0 => return Ok(()),
            count => both.write_all(&piece[..count])?,
        }
        both.flush()?;
    }
}

/// Bytes that tell their place.
fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| ((at + seed) % 251) as u8).collect()
}

#[test]
fn a_handler_reads_and_writes_at_once() {
    let server = served(Server::new().post("/", echo));
    let client = Client::connect(&server);
    let (answer, mut stream) = client.begin(Asked::post("http://a/").body(()).unwrap(), false);
    let mut answer = block_on(answer).unwrap().into_body();
    for word in ["one", "two", "three"] {
        stream.send_data(Bytes::from(word), false).unwrap();
        assert_eq!(next_piece(&mut answer).unwrap().unwrap(), word);
    }
    stream.send_data(Bytes::new(), true).unwrap();
    while let Some(piece) = next_piece(&mut answer).unwrap() {
        assert!(piece.is_empty());
    }
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn large_bodies_go_both_ways_in_many_streams() {
    let server = Server::new()
        .post("/pieces", echo)
        .post("/whole", |request: &mut Request| request.bytes());
    let server = served(server);
    let client = Arc::new(Client::connect(&server));
    let asking = (0..8).map(|number| {
        let client = Arc::clone(&client);
        thread::spawn(move || {
            let path = ["/pieces", "/whole"][number % 2];
            let body = pattern(MEBIBYTE + number, number);
            let request = Asked::post(format!("http://a{path}")).body(()).unwrap();
            let (answer, mut stream) = client.begin(request, false);
            let sent = Bytes::from(body.clone());
            // The answer comes while the body is sent.
            let sending = thread::spawn(move || send(&mut stream, sent, true));
            let answer = receive(answer).unwrap();
            sending.join().unwrap();
            assert!(answer.body == body);
        })
    });
    let asking = Vec::from_iter(asking);
    asking.into_iter().for_each(|one| one.join().unwrap());
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_client_that_reads_nothing_parks_the_handler() {
    const PIECE: usize = 1024;
    // What a handler has been able to write: its buffer, h2's, and the client's window.
    const MOST: usize = (16 + 64 + 64) * 1024;
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let large = move |request: &mut Request| -> io::Result<()> {
        let mut body = request.respond(Response::ok())?;
        for _ in 0..MEBIBYTE / PIECE {
            body.write_all(&[7; PIECE])?;
            count.fetch_add(PIECE, SeqCst);
        }
        Ok(())
    };
    let small = || "small";
    let server = served(Server::new().get("/large", large).get("/small", small));
    let client = Client::connect(&server);
    let (answer, _) = client.begin(get("/large"), true);
    let mut answer = block_on(answer).unwrap().into_body();
    // All that the window admits, without giving any of it back.
    let mut received = 0;
    while received < 65_535 {
        received += block_on(answer.data()).unwrap().unwrap().len();
    }
    // The connection's window is used up as well: heads go through nevertheless.
    let (other, _) = client.begin(get("/small"), true);
    let other = block_on(other).unwrap();
    assert!(written.load(SeqCst) <= MOST, "{written:?}");
    answer.flow_control().release_capacity(received).unwrap();
    let mut other = other.into_body();
    assert_eq!(next_piece(&mut other).unwrap().unwrap(), "small");
    while let Some(piece) = next_piece(&mut answer).unwrap() {
        received += piece.len();
    }
    assert_eq!(received, MEBIBYTE);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_handler_that_reads_nothing_stops_the_client() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let opened = Arc::clone(&gate);
    let handler = move |request: &mut Request| -> io::Result<String> {
        let (open, changed) = &*opened;
        let open = open.lock().unwrap();
        drop(changed.wait_while(open, |open| !*open).unwrap());
        Ok(io::copy(request, &mut io::sink())?.to_string())
    };
    let limits = Limits::default().body(8 << 20);
    let server = served(Server::new().limits(limits).post("/", handler));
    let client = Client::connect(&server);
    let (answer, mut stream) = client.begin(Asked::post("http://a/").body(()).unwrap(), false);
    // The window of a stream: more has no room until the handler reads.
    send(&mut stream, Bytes::from(vec![1; 256 * 1024]), false);
    stream.reserve_capacity(1);
    assert_eq!(stream.capacity(), 0);
    let (open, changed) = &*gate;
    *open.lock().unwrap() = true;
    changed.notify_all();
    send(&mut stream, Bytes::from(vec![1; MEBIBYTE]), true);
    let expected = (MEBIBYTE + 256 * 1024).to_string();
    assert_eq!(receive(answer).unwrap().text(), expected);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn clients_are_told_how_many_streams_there_may_be() {
    let server = Server::new()
        .limits(Limits::default().streams(3))
        .get("/", || "in");
    let server = served(server);
    let socket = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    let io = AsyncIo::new(socket).unwrap();
    let (sender, connection) = block_on(Builder::new().handshake::<_, Bytes>(io)).unwrap();
    let connection = Mutex::new(connection);
    let client = thread::spawn(move || {
        let mut connection = connection.into_inner().unwrap();
        block_on(&mut connection).unwrap();
        connection.max_concurrent_send_streams()
    });
    let mut sender = block_on(sender.ready()).unwrap();
    let (answer, _) = sender.send_request(get("/"), true).unwrap();
    assert_eq!(receive(answer).unwrap().text(), "in");
    assert_eq!(server.connections(), 1, "a stream is no connection");
    drop(sender);
    assert_eq!(client.join().unwrap(), 3);
    assert_eq!(server.shutdown(), 0);
}

/// What reading a request's body ends with, and whether that is because the upload is late.
type End = (Option<io::ErrorKind>, bool);

/// A server whose uploads have 300 ms: `/words` says what it is told to, and posts are read. Tells
/// what reading ends with.
fn with_uploads() -> (Running, mpsc::Sender<&'static str>, mpsc::Receiver<End>) {
    let (words, coming) = mpsc::channel::<&str>();
    let coming = Mutex::new(coming);
    let speak = move |request: &mut Request| -> io::Result<()> {
        let mut body = request.respond(Response::ok())?;
        while let Ok(word) = coming.lock().unwrap().recv() {
            body.write_all(word.as_bytes())?;
            body.flush()?;
        }
        Ok(())
    };
    let (say, ends) = mpsc::channel();
    let swallow = move |request: &mut Request| {
        let result = io::copy(request, &mut io::sink());
        let kind = result.as_ref().err().map(io::Error::kind);
        say.send((kind, request.is_upload_late())).unwrap();
        result.map(drop)
    };
    // The handler has more time, and is not what is late.
    let timeouts = Timeouts::default()
        .upload(patient(Duration::from_millis(300)))
        .handler(Duration::from_secs(600));
    let server = Server::new().timeouts(timeouts);
    let server = server.get("/words", speak).post("/", swallow);
    (served(server), words, ends)
}

#[test]
fn an_upload_without_end_is_ended_and_other_streams_go_on() {
    let (server, words, ends) = with_uploads();
    let client = Client::connect(&server);
    let (answer, _) = client.begin(get("/words"), true);
    let mut spoken = block_on(answer).unwrap().into_body();
    let mut hear = |word| {
        words.send(word).unwrap();
        assert_eq!(next_piece(&mut spoken).unwrap().unwrap(), word);
    };
    hear("before");
    // 500 times as fast as the 500 bytes per second of the default, and not at all.
    for drips in [true, false] {
        let (answer, mut stream) = client.begin(Asked::post("http://a/").body(()).unwrap(), false);
        let dripping = thread::spawn(move || {
            let piece = Bytes::from_static(&[b'x'; 256]);
            while drips && stream.send_data(piece.clone(), false).is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
            stream
        });
        hear("meanwhile");
        let answer = receive(answer).unwrap();
        assert_eq!(answer.status, 408);
        assert!(answer.text().contains("(Timeouts::upload)"), "{answer:?}");
        let end = (Some(io::ErrorKind::TimedOut), true);
        assert_eq!(ends.recv().unwrap(), end);
        hear("after");
        drop(dripping.join().unwrap());
    }
    drop(words);
    let end = next_piece(&mut spoken).unwrap();
    assert!(end.is_none_or(|end| end.is_empty()));
    assert_eq!(server.shutdown(), 0);
}
