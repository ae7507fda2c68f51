//! Connections that leave HTTP.

use pirn_http::{Request, Response, Server};
use std::io::{Read, Write};
use std::net::TcpStream;

fn shout() -> Server {
    let shout = |_: &mut Request| {
        Response::upgrade("shout", |mut connection| {
            let mut all = String::new();
            if connection.read_to_string(&mut all).is_ok() {
                let shouted = all.to_ascii_uppercase();
                connection.write_all(shouted.as_bytes()).unwrap();
            }
        })
    };
    Server::new().get("/", shout)
}

#[test]
fn what_follows_an_upgrade_is_the_new_protocols() {
    let head = "GET / HTTP/1.1\r\nhost: a\r\nupgrade: shout\r\nconnection: upgrade\r\n\r\n";
    // It comes with the request here, and later below.
    let answer = shout().client().send(format!("{head}hello").as_bytes());
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\nupgrade: shout\r\n"));
    assert!(answer.contains("\r\nconnection: upgrade\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nHELLO"), "{answer}");

    let server = shout().bind("127.0.0.1:0").unwrap().start().unwrap();
    let mut client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    client.write_all(head.as_bytes()).unwrap();
    let mut got = Vec::new();
    while !got.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        got.push(byte[0]);
    }
    client.write_all(b"later").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "LATER");
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn shutting_down_ends_a_connection_that_waits_in_another_protocol() {
    let server = shout().bind("127.0.0.1:0").unwrap().start().unwrap();
    let mut client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nupgrade: shout\r\nconnection: upgrade\r\n\r\n")
        .unwrap();
    let mut byte = [0];
    client.read_exact(&mut byte).unwrap(); // It has been upgraded, or will be soon.
    assert_eq!(server.shutdown(), 0);
}
