//! Streams that carry other protocols (RFC 8441), with tungstenite's WebSockets.

use super::{Client, next_piece, receive, send, served};
use crate::websocket::{echo, farewell, handing_out, sending_for_ever};
use ::http::{Method, Request as Asked};
use bytes::{Buf, Bytes};
use h2::ext::Protocol;
use h2::{RecvStream, SendStream};
use pirn::{block_on, thread};
use pirn_http::{Limits, Request, Response, Server, Status};
use std::io::{self, Read, Write};
use tungstenite::protocol::Role;
use tungstenite::{Message, protocol::frame::coding::CloseCode};

/// A stream of the client, as a socket.
struct Tunnel {
    sender: SendStream<Bytes>,
    receiver: RecvStream,
    piece: Bytes,
}

impl Read for Tunnel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match next_piece(&mut self.receiver).map_err(io::Error::other)? {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let count = self.piece.len().min(buffer.len());
        self.piece.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

impl Write for Tunnel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        send(&mut self.sender, Bytes::copy_from_slice(bytes), false);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Client {
    fn asks_for(&self, protocol: &str, path: &str) -> Asked<()> {
        while !self.sender.is_extended_connect_protocol_enabled() {
            thread::yield_now(); // The server's settings are on their way.
        }
        Asked::builder()
            .method(Method::CONNECT)
            .uri(format!("http://a{path}"))
            .extension(Protocol::from(protocol))
            .header("sec-websocket-version", "13")
            .body(())
            .unwrap()
    }

    /// Opens a stream for another protocol.
    fn tunnel(&self, protocol: &str, path: &str) -> Tunnel {
        let (answer, sender) = self.begin(self.asks_for(protocol, path), false);
        let answer = block_on(answer).unwrap();
        assert_eq!(answer.status(), Status::OK);
        assert!(!answer.headers().contains_key("upgrade"));
        Tunnel {
            sender,
            receiver: answer.into_body(),
            piece: Bytes::new(),
        }
    }

    fn socket(&self, path: &str) -> tungstenite::WebSocket<Tunnel> {
        let tunnel = self.tunnel("websocket", path);
        tungstenite::WebSocket::from_raw_socket(tunnel, Role::Client, None)
    }
}

#[test]
fn sockets_and_requests_share_a_connection() {
    let server = Server::new()
        .websocket("/echo", echo)
        .get("/", || "Hello, World!");
    let server = served(server);
    let client = Client::connect(&server);
    let mut sockets = [client.socket("/echo"), client.socket("/echo")];
    // More than the windows of a stream and of a connection.
    let large = Message::from(vec![7; 1_500_000]);
    for message in [Message::from("hello"), large, Message::from("")] {
        for socket in &mut sockets {
            socket.send(message.clone()).unwrap();
            assert_eq!(socket.read().unwrap(), message);
        }
        assert_eq!(client.get("/").text(), "Hello, World!");
    }
    for mut socket in sockets {
        socket.close(None).unwrap();
        farewell(&mut socket);
    }
    client.end().unwrap();
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn others_send_while_one_thread_waits_for_a_message() {
    let (server, arrived) = handing_out();
    let server = served(server);
    let client = Client::connect(&server);
    let mut socket = client.socket("/");
    let sender = arrived.recv().unwrap();
    for number in 0..100 {
        sender.send(number.to_string()).unwrap();
        assert_eq!(socket.read().unwrap(), Message::from(number.to_string()));
    }
    // A client that resets its stream ends the wait.
    socket.get_mut().sender.send_reset(h2::Reason::CANCEL);
    drop(socket);
    while sender.send("too late").is_ok() {
        thread::yield_now();
    }
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn shutting_down_says_farewell() {
    let server = served(Server::new().websocket("/", echo));
    let client = Client::connect(&server);
    let mut socket = client.socket("/");
    socket.send("hello".into()).unwrap();
    assert_eq!(socket.read().unwrap(), Message::from("hello"));
    let reader = thread::spawn(move || farewell(&mut socket));
    assert_eq!(server.shutdown(), 0);
    assert_eq!(reader.join().unwrap(), Some(CloseCode::Away));
}

#[test]
fn what_is_too_large_is_refused_and_the_connection_goes_on() {
    let limits = Limits::default().body(1000);
    let server = Server::new().websocket("/", echo).limits(limits);
    let server = served(server);
    let client = Client::connect(&server);
    let mut socket = client.socket("/");
    socket.send(Message::from(vec![0; 200_000])).unwrap();
    assert_eq!(farewell(&mut socket), Some(CloseCode::Size));
    drop(socket);
    let mut socket = client.socket("/");
    socket.send("hello".into()).unwrap();
    assert_eq!(socket.read().unwrap(), Message::from("hello"));
    drop(socket);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn other_protocols_and_refusals_are_as_in_http_1() {
    let server = Server::new().get("/", |request: &mut Request| {
        match request.header("upgrade") {
            Some("shout") => Response::upgrade("shout", |mut connection| {
                assert!(connection.peer().is_some() && !connection.is_secure());
                let mut all = String::new();
                connection.read_to_string(&mut all).unwrap();
                connection.write_all(all.to_uppercase().as_bytes()).unwrap();
            }),
            _ => Response::new(Status::FORBIDDEN),
        }
    });
    let server = served(server.get("/page", || "no protocol"));
    let client = Client::connect(&server);
    let mut tunnel = client.tunnel("shout", "/");
    send(&mut tunnel.sender, Bytes::from_static(b"hello"), true);
    let mut all = String::new();
    tunnel.read_to_string(&mut all).unwrap();
    assert_eq!(all, "HELLO");
    for (path, status) in [("/", Status::FORBIDDEN), ("/page", Status::NOT_IMPLEMENTED)] {
        let refused = client.begin(client.asks_for("whisper", path), false).0;
        assert_eq!(receive(refused).unwrap().status, status);
    }
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_client_whose_window_stays_full_is_cut_off() {
    let (server, has_failed) = sending_for_ever();
    let server = served(server);
    let client = Client::connect(&server);
    let tunnel = client.tunnel("websocket", "/");
    has_failed.recv().unwrap();
    drop(tunnel);
    client.end().unwrap();
    assert_eq!(server.shutdown(), 0);
}
