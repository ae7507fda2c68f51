//! Connections that leave HTTP.

use pirn_http::{Request, Response, Server, Status, header};
use std::io::{Read, Write};
use std::net::TcpStream;

fn shout() -> Server {
    let shout = || {
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
fn a_body_is_not_taken_for_the_other_protocol() {
    let head = "POST / HTTP/1.1\r\nhost: a\r\nupgrade: shout\r\nconnection: upgrade\r\n";
    let shout = |request: &mut Request| {
        if request.query_value("read").is_some() {
            request.bytes()?;
        }
        Ok::<_, std::io::Error>(Response::upgrade("shout", |mut connection| {
            connection.write_all(b"in").unwrap();
        }))
    };
    let client = Server::new().post("/", shout).client();
    for body in [
        "content-length: 5\r\n\r\nhello",
        "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        let answer = client.send(format!("{head}{body}").as_bytes());
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
        let read = format!("{head}{body}").replace(" / ", " /?read=1 ");
        let answer = String::from_utf8(client.send(read.as_bytes())).unwrap();
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
        assert!(answer.ends_with("\r\n\r\nin"), "{answer}");
    }
}

#[test]
fn a_connection_that_ends_says_so_also_where_another_protocol_is_asked_for() {
    let required = || {
        let required = Response::new(Status::UPGRADE_REQUIRED);
        required.header(header::UPGRADE, "shout")
    };
    let client = Server::new().get("/", required).client();
    let head = "GET / HTTP/1.1\r\nhost: a\r\n";
    let says = |request: &str, what: &str| {
        let answer = String::from_utf8(client.send(request.as_bytes())).unwrap();
        assert!(answer.contains(what), "{what:?} in {answer}");
    };
    says(&format!("{head}\r\n"), "\r\nconnection: upgrade\r\n");
    let last = format!("{head}connection: close\r\n\r\n");
    says(&last, "\r\nconnection: upgrade, close\r\n");
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
