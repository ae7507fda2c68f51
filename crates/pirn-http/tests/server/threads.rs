//! Servers whose connections have threads of another kind.

use pirn::thread::{self, Builder, PlatformThreads, Threads};
use pirn_http::{Request, Running, Server};
use std::io::{self, Read, Write};
use std::net::TcpStream;

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

/// Starts a server that says which threads its handlers have.
fn start(threads: impl Into<Threads>) -> Running {
    let who = |_: &mut Request| {
        let thread = thread::current();
        let name = thread.name().unwrap_or_default().to_owned();
        format!("{name}, {}", thread.is_virtual())
    };
    let server = Server::new().get("/", who).threads(threads);
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
    let platform = PlatformThreads::new().name_counter("platform-", 1);
    let virtual_ones = Builder::new().name_counter("virtual-", 1);
    for (server, expected) in [
        (start(Threads::default()), ", true"),
        (start(virtual_ones), "virtual-1, true"),
        (start(platform), "platform-1, false"),
    ] {
        let answer = ask(&server).unwrap();
        assert!(answer.ends_with(&format!("\r\n\r\n{expected}")), "{answer}");
        assert_eq!(server.shutdown(), 0);
    }
}

#[test]
fn a_connection_for_which_there_is_no_thread_is_closed() {
    // A platform thread cannot have this name.
    let server = start(PlatformThreads::new().name_counter("\0", 1));
    for _ in 0..3 {
        // The request may be unread: then the connection is reset.
        let answer = ask(&server);
        assert!(answer.as_deref().unwrap_or("").is_empty(), "{answer:?}");
    }
    assert_eq!(server.connections(), 0);
    assert_eq!(server.shutdown(), 0);
}
