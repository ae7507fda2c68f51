//! Ends of streams and of connections.

use super::{Client, get, receive, served};
use h2::Reason;
use pirn::{block_on, thread};
use pirn_http::{Request, Response, Running, Server, Status, Timeouts};
use pirn_testing::patient;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// What a handler that waits tells the test.
#[derive(Debug, PartialEq)]
enum Event {
    Begins,
    /// With the error, and whether the client is known to be gone.
    Ends(Option<i32>, bool),
}

/// Returns a server whose handler waits for what never comes, or comes by `way_out`.
fn waiting(server: Server, way_out: Option<UnixStream>) -> (Running, Receiver<Event>) {
    let (say, events) = mpsc::channel();
    let wait = move |request: &mut Request| -> io::Result<&str> {
        say.send(Event::Begins).unwrap();
        let (mut silent, _other) = UnixStream::pair()?;
        let result = match &way_out {
            Some(way_out) => (&*way_out).read(&mut [0]),
            None => silent.read(&mut [0]),
        };
        let error = result.as_ref().err().and_then(io::Error::raw_os_error);
        say.send(Event::Ends(error, request.is_client_gone()))
            .unwrap();
        result.map(|_| "done")
    };
    let stuck = |request: &mut Request| -> io::Result<()> {
        let mut body = request.respond(Response::ok())?;
        loop {
            body.write_all(&[0; 4096])?;
        }
    };
    let server = server
        .get("/", wait)
        .get("/stuck", stuck)
        .get("/hello", || "hello");
    (served(server), events)
}

const CANCELED: Option<i32> = Some(125);

#[test]
fn a_handler_is_interrupted_when_its_stream_is_reset() {
    let (server, events) = waiting(Server::new(), None);
    let client = Client::connect(&server);
    for _ in 0..3 {
        let (_answer, mut stream) = client.begin(get("/"), false);
        assert_eq!(events.recv().unwrap(), Event::Begins);
        stream.send_reset(Reason::CANCEL);
        assert_eq!(events.recv().unwrap(), Event::Ends(CANCELED, true));
    }
    assert_eq!(client.get("/hello").text(), "hello");
    client.end().unwrap();
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn all_handlers_are_interrupted_when_their_client_hangs_up() {
    let (server, events) = waiting(Server::new(), None);
    let socket = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    let handle = socket.try_clone().unwrap();
    let client = Client::on(pirn::AsyncIo::new(socket).unwrap());
    let _asked = [(); 3].map(|()| client.begin(get("/"), true));
    let _stuck = client.begin(get("/stuck"), true);
    for _ in 0..3 {
        assert_eq!(events.recv().unwrap(), Event::Begins);
    }
    handle.shutdown(std::net::Shutdown::Both).unwrap();
    for _ in 0..3 {
        assert_eq!(events.recv().unwrap(), Event::Ends(CANCELED, true));
    }
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_reset_while_the_handler_waits_for_room_ends_it() {
    let (say, ended) = mpsc::channel();
    let endless = move |request: &mut Request| -> io::Result<()> {
        let mut body = request.respond(Response::ok())?;
        let error = loop {
            if let Err(error) = body.write_all(&[0; 4096]) {
                break error;
            }
        };
        say.send(error.kind()).unwrap();
        Err(error)
    };
    let server = served(Server::new().get("/", endless));
    let client = Client::connect(&server);
    let (answer, mut stream) = client.begin(get("/"), false);
    let mut answer = block_on(answer).unwrap().into_body();
    let mut received = 0;
    while received < 65_535 {
        received += block_on(answer.data()).unwrap().unwrap().len();
    }
    stream.send_reset(Reason::CANCEL);
    assert_eq!(ended.recv().unwrap(), io::ErrorKind::BrokenPipe);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn streams_that_run_end_well_when_the_server_is_shut_down() {
    let (own, mut other) = UnixStream::pair().unwrap();
    let (server, events) = waiting(Server::new(), Some(own));
    let client = Client::connect(&server);
    let idle = Client::connect(&server);
    assert_eq!(idle.get("/hello").text(), "hello");
    let (answer, _stream) = client.begin(get("/"), true);
    assert_eq!(events.recv().unwrap(), Event::Begins);
    let ending = thread::spawn(move || server.shutdown());
    // The idle one is told, and closed at once.
    idle.end().unwrap();
    other.write_all(b"!").unwrap();
    assert_eq!(receive(answer).unwrap().text(), "done");
    assert_eq!(events.recv().unwrap(), Event::Ends(None, false));
    client.end().unwrap();
    assert_eq!(ending.join().unwrap(), 0);
}

#[test]
fn streams_that_do_not_end_are_interrupted_after_the_grace() {
    let timeouts = Timeouts::default().grace(patient(Duration::from_millis(100)));
    let (server, events) = waiting(Server::new().timeouts(timeouts), None);
    let client = Client::connect(&server);
    let (answer, _stream) = client.begin(get("/"), true);
    assert_eq!(events.recv().unwrap(), Event::Begins);
    let ending = thread::spawn(move || server.shutdown());
    assert_eq!(events.recv().unwrap(), Event::Ends(CANCELED, false));
    let answer = receive(answer).unwrap();
    assert_eq!(answer.status, Status::INTERNAL_SERVER_ERROR);
    client.end().unwrap();
    assert_eq!(ending.join().unwrap(), 0);
}

#[test]
fn a_connection_without_streams_is_closed_in_the_end() {
    let timeouts = Timeouts::default().idle(patient(Duration::from_millis(100)));
    let (own, mut other) = UnixStream::pair().unwrap();
    let (server, events) = waiting(Server::new().timeouts(timeouts), Some(own));
    let client = Client::connect(&server);
    let idle = Client::connect(&server);
    let (answer, _stream) = client.begin(get("/"), true);
    assert_eq!(events.recv().unwrap(), Event::Begins);
    // By the time that this one is closed the other one would be, were it idle.
    idle.driver.join().unwrap().unwrap();
    other.write_all(b"!").unwrap();
    assert_eq!(receive(answer).unwrap().text(), "done");
    client.driver.join().unwrap().unwrap();
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_client_that_only_begins_is_closed() {
    let timeouts = Timeouts::default().head(patient(Duration::from_millis(50)));
    let (server, _events) = waiting(Server::new().timeouts(timeouts), None);
    // The first has no SETTINGS, the second not even a whole preface.
    for beginning in [
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM",
    ] {
        let mut socket = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        socket.write_all(beginning.as_bytes()).unwrap();
        socket.read_to_end(&mut Vec::new()).unwrap();
    }
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_client_that_takes_no_answer_is_given_up() {
    let timeouts = Timeouts::default().body(patient(Duration::from_millis(100)), 1 << 20);
    let (server, _events) = waiting(Server::new().timeouts(timeouts), None);
    let client = Client::connect(&server);
    let (answer, _stream) = client.begin(get("/stuck"), true);
    let mut answer = block_on(answer).unwrap().into_body();
    let error = loop {
        match block_on(answer.data()) {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("the body has no end"),
        }
    };
    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
    let (other, _) = client.begin(get("/hello"), true);
    assert_eq!(block_on(other).unwrap().status(), Status::OK);
    assert_eq!(server.shutdown(), 0);
}
