//! Servers whose connections have threads of another kind.

use pirn::thread::{self, Builder};
use pirn_http::{Running, Server};
use std::io::{self, Read, Write};
use std::net::TcpStream;

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

/// Starts a server that says which threads its handlers have.
fn start(threads: fn(Server) -> Server) -> Running {
    let who = || {
        let thread = thread::current();
        let name = thread.name().unwrap_or_default().to_owned();
        format!("{name}, {}", thread.is_virtual())
    };
    let server = threads(Server::new().get("/", who));
    server.bind("127.0.0.1:0").unwrap().start().unwrap()
}

fn ask(server: &Running) -> io::Result<String> {
    let mut client = TcpStream::connect(server.local_addr().unwrap())?;
    client.write_all(GET)?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn connections_have_the_threads_that_the_server_was_given() {
    let virtual_ones = |server: Server| server.threads(Builder::new().name("virtual".into()));
    let platform_ones = |server: Server| {
        server.platform_threads(|| std::thread::Builder::new().name("platform".into()))
    };
    for (server, expected) in [
        (start(|server| server), ", true"),
        (start(virtual_ones), "virtual, true"),
        (start(platform_ones), "platform, false"),
    ] {
        let answer = ask(&server).unwrap();
        assert!(answer.ends_with(&format!("\r\n\r\n{expected}")), "{answer}");
        assert_eq!(server.shutdown(), 0);
    }
}

#[test]
fn a_connection_for_which_there_is_no_thread_is_closed() {
    // No system has so much memory.
    let server = start(|server| {
        server.platform_threads(|| std::thread::Builder::new().stack_size(usize::MAX / 4))
    });
    for _ in 0..3 {
        // The request may be unread: then the connection is reset.
        let answer = ask(&server);
        assert!(answer.as_deref().unwrap_or("").is_empty(), "{answer:?}");
    }
    assert_eq!(server.connections(), 0);
    assert_eq!(server.shutdown(), 0);
}
