//! Handlers whose clients hang up, and handlers that are late.

use pirn_http::{Running, Server, Timeouts};
use pirn_testing::patient;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

/// What a handler that waits tells the test.
#[derive(Debug, PartialEq)]
enum Event {
    Begins,
    Ends(Option<i32>),
}

/// Returns a server whose handler waits for what never comes. `own`: a way out for the handler.
fn waiting(server: Server, own: Option<UnixStream>) -> (Running, Receiver<Event>) {
    let (say, events) = mpsc::channel();
    let server = server.get("/", move || -> io::Result<&str> {
        say.send(Event::Begins).unwrap();
        let (mut silent, _other) = UnixStream::pair()?;
        let result = match &own {
            Some(own) => (&*own).read(&mut [0]),
            None => silent.read(&mut [0]),
        };
        let error = result.as_ref().err().and_then(io::Error::raw_os_error);
        say.send(Event::Ends(error)).unwrap();
        result.map(|_| "done")
    });
    (server.bind("127.0.0.1:0").unwrap().start().unwrap(), events)
}

fn connect(server: &Running) -> TcpStream {
    let mut client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    client.write_all(GET).unwrap();
    client
}

fn rest(client: &mut TcpStream) -> String {
    let mut all = String::new();
    client.read_to_string(&mut all).unwrap();
    all
}

#[test]
fn a_handler_is_interrupted_when_its_client_hangs_up() {
    let (server, events) = waiting(Server::new(), None);
    for _ in 0..3 {
        let client = connect(&server);
        assert_eq!(events.recv().unwrap(), Event::Begins);
        drop(client);
        assert_eq!(events.recv().unwrap(), Event::Ends(Some(125))); // ECANCELED
    }
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn one_that_has_hung_up_before_its_handler_begins_is_noticed() {
    let (server, events) = waiting(Server::new(), None);
    let client = connect(&server);
    assert_eq!(events.recv().unwrap(), Event::Begins);
    let mut impatient = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    impatient.write_all(&[GET, GET].concat().repeat(2)).unwrap();
    drop(impatient);
    assert_eq!(events.recv().unwrap(), Event::Begins);
    assert_eq!(events.recv().unwrap(), Event::Ends(Some(125)));
    drop(client);
    assert_eq!(events.recv().unwrap(), Event::Ends(Some(125)));
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_client_that_only_sends_no_more_is_answered_nevertheless() {
    let (server, events) = waiting(Server::new(), None);
    let mut client = connect(&server);
    assert_eq!(events.recv().unwrap(), Event::Begins);
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(events.recv().unwrap(), Event::Ends(Some(125)));
    assert!(rest(&mut client).starts_with("HTTP/1.1 500 "));
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_client_may_be_allowed_to_send_no_more() {
    let (own, mut other) = UnixStream::pair().unwrap();
    let (server, events) = waiting(Server::new().half_close(true), Some(own));
    let mut client = connect(&server);
    assert_eq!(events.recv().unwrap(), Event::Begins);
    client.shutdown(Shutdown::Write).unwrap();
    // A client that comes later is noticed later: nothing of the first has been by then.
    let reset = connect(&server);
    assert_eq!(events.recv().unwrap(), Event::Begins);
    rustix::net::sockopt::set_socket_linger(&reset, Some(Duration::ZERO)).unwrap();
    drop(reset);
    assert_eq!(events.recv().unwrap(), Event::Ends(Some(125)));
    other.write_all(b"!").unwrap();
    assert_eq!(events.recv().unwrap(), Event::Ends(None));
    assert!(rest(&mut client).ends_with("\r\n\r\ndone"));
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_handler_that_is_late_is_interrupted() {
    let timeouts = Timeouts::default().handler(patient(Duration::from_millis(50)));
    let (server, events) = waiting(Server::new().timeouts(timeouts), None);
    let mut client = connect(&server);
    assert!(rest(&mut client).starts_with("HTTP/1.1 503 "));
    assert_eq!(events.recv().unwrap(), Event::Begins);
    assert_eq!(events.recv().unwrap(), Event::Ends(Some(125)));
    assert_eq!(server.shutdown(), 0);
}
