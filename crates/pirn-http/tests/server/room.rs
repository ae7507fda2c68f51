//! Room for clients: how many there may be, those in the listener's queue, and files of sockets.

use pirn_http::{Limits, Listener, Server};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

fn hello() -> Server {
    Server::new().get("/", || "Hello, World!")
}

/// Waits for an answer, or for the connection's end.
fn answer(mut stream: &TcpStream) -> String {
    let mut all = Vec::new();
    let mut piece = [0; 1024];
    while !all.ends_with(b"World!") {
        match stream.read(&mut piece) {
            Ok(count @ 1..) => all.extend_from_slice(&piece[..count]),
            _ => break,
        }
    }
    String::from_utf8(all).unwrap()
}

#[test]
fn a_client_that_waits_gets_the_place_of_the_one_that_has_been_idle_for_longest() {
    let limits = Limits::default().connections(3);
    let server = hello()
        .limits(limits)
        .bind("127.0.0.1:0")
        .unwrap()
        .start()
        .unwrap();
    let connect = || TcpStream::connect(server.local_addr().unwrap()).unwrap();
    let asked = |client: TcpStream| {
        (&client).write_all(GET).unwrap();
        assert!(answer(&client).starts_with("HTTP/1.1 200 "));
        client
    };
    let silent = connect();
    while server.connections() < 1 {
        std::thread::yield_now();
    }
    let first = asked(connect());
    let second = asked(connect());
    // No time limit of the server ends one of them before 75 seconds have passed.
    let third = asked(connect());
    assert_eq!(
        answer(&silent),
        "",
        "it never had a request, and has waited for longest"
    );
    let fourth = asked(connect());
    assert_eq!(answer(&first), "");
    for kept in [second, third, fourth] {
        asked(kept);
    }
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn clients_in_the_queue_are_served_when_the_server_is_shut_down() {
    let bound = hello().bind("127.0.0.1:0").unwrap();
    let address = bound.local_addr().unwrap();
    let clients = Vec::from_iter((0..20).map(|_| TcpStream::connect(address).unwrap()));
    for mut client in &clients {
        client.write_all(GET).unwrap();
    }
    let server = bound.start().unwrap();
    assert_eq!(server.shutdown(), 0);
    for client in &clients {
        let answer = answer(client);
        assert!(answer.ends_with("World!"), "{answer}");
    }
}

#[test]
fn a_first_request_that_is_on_its_way_is_served_when_the_server_is_shut_down() {
    // It has a second for that. On a busy machine the client may be later now and then.
    let is_served = |_| {
        let server = hello().bind("127.0.0.1:0").unwrap().start().unwrap();
        let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        while server.connections() < 1 {
            std::thread::yield_now();
        }
        std::thread::scope(|scope| {
            let ended = scope.spawn(|| server.shutdown());
            while TcpStream::connect(server.local_addr().unwrap()).is_ok() {
                std::thread::yield_now();
            }
            let sent = (&client).write_all(GET);
            assert_eq!(ended.join().unwrap(), 0);
            sent.is_ok() && answer(&client).ends_with("World!")
        })
    };
    assert!((0..20).any(is_served));
}

#[test]
fn the_file_of_a_socket_goes_with_it_unless_another_has_taken_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let start = || {
        hello()
            .listen(Listener::unix(&path).unwrap())
            .start()
            .unwrap()
    };
    let server = start();
    let mut client = std::os::unix::net::UnixStream::connect(&path).unwrap();
    client.write_all(GET).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut all = String::new();
    client.read_to_string(&mut all).unwrap();
    assert!(all.ends_with("World!"), "{all}");
    server.shutdown();
    assert!(!path.exists());
    let server = start();
    std::fs::remove_file(&path).unwrap();
    let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    server.shutdown();
    assert!(path.exists());
    drop(other);
}
