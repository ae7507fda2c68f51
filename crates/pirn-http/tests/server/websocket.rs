//! WebSockets, with tungstenite's client.

use pirn_http::{Limits, Request, Response, Server, Status, Timeouts, WebSocket};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;
use tungstenite::protocol::{CloseFrame, frame::coding::CloseCode};
use tungstenite::{Error, Message, client::client};

type Client = tungstenite::WebSocket<TcpStream>;

fn start(server: Server) -> pirn_http::Running {
    server.bind("127.0.0.1:0").unwrap().start().unwrap()
}

fn connect(server: &pirn_http::Running) -> Client {
    let address = server.local_addr().unwrap();
    let stream = TcpStream::connect(address).unwrap();
    client(format!("ws://{address}/"), stream).unwrap().0
}

pub(crate) fn echo(mut socket: WebSocket) -> std::io::Result<()> {
    while let Some(message) = socket.read()? {
        socket.send(message)?;
    }
    Ok(())
}

/// A server that hands out its sockets, while one thread of each waits for messages.
pub(crate) fn handing_out() -> (Server, mpsc::Receiver<WebSocket>) {
    let (sockets, arrived) = mpsc::channel();
    let server = Server::new().websocket("/", move |mut socket| {
        sockets.send(socket.clone()).unwrap();
        while socket.read()?.is_some() {}
        Ok(())
    });
    (server, arrived)
}

/// Reads until the socket is closed; returns the code of the farewell.
pub(crate) fn farewell<S: Read + Write>(
    client: &mut tungstenite::WebSocket<S>,
) -> Option<CloseCode> {
    let mut code = None;
    loop {
        match client.read() {
            Ok(Message::Close(frame)) => code = frame.map(|frame| frame.code),
            Ok(_) => {}
            Err(_) => return code,
        }
    }
}

#[test]
fn messages_come_back() {
    let server = start(Server::new().websocket("/", echo));
    let mut client = connect(&server);
    let large = vec![7; 1 << 20];
    for message in [
        Message::from("hello"),
        Message::from(large),
        Message::from(""),
    ] {
        client.send(message.clone()).unwrap();
        assert_eq!(client.read().unwrap(), message);
    }
    client
        .send(Message::Ping(b"are you there"[..].into()))
        .unwrap();
    assert_eq!(
        client.read().unwrap(),
        Message::Pong(b"are you there"[..].into())
    );
    client.close(None).unwrap();
    farewell(&mut client);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn others_send_while_one_thread_waits_for_a_message() {
    let (server, arrived) = handing_out();
    let server = start(server);
    let mut clients = [connect(&server), connect(&server)];
    let all = [arrived.recv().unwrap(), arrived.recv().unwrap()];
    for number in 0..100 {
        for socket in &all {
            socket.send(number.to_string()).unwrap();
        }
    }
    for client in &mut clients {
        for number in 0..100 {
            assert_eq!(client.read().unwrap(), Message::from(number.to_string()));
        }
        client.close(None).unwrap();
        farewell(client);
    }
    let closed = all[0].send("too late").unwrap_err();
    assert!(
        matches!(
            closed.kind(),
            ErrorKind::NotConnected | ErrorKind::BrokenPipe
        ),
        "{closed}"
    );
    assert_eq!(server.shutdown(), 0);
}

/// A longer control frame would break the connection.
#[test]
fn control_frames_stay_within_the_protocol() {
    let (server, arrived) = handing_out();
    let server = start(server);
    let long = "é".repeat(100);
    let closings: [fn(&WebSocket, &str) -> std::io::Result<()>; 2] = [
        |socket, reason| socket.close(CloseCode::Policy, reason),
        |socket, reason| {
            let (code, reason) = (CloseCode::Policy, reason.into());
            socket.send(Message::Close(Some(CloseFrame { code, reason })))
        },
    ];
    for close in closings {
        let mut client = connect(&server);
        let socket = arrived.recv().unwrap();
        for message in [Message::Ping, Message::Pong] {
            let error = socket.send(message(vec![7; 126].into())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        socket.send(Message::Ping(vec![7; 125].into())).unwrap();
        assert!(matches!(client.read(), Ok(Message::Ping(_))));
        close(&socket, &long).unwrap();
        let Ok(Message::Close(Some(frame))) = client.read() else {
            panic!("no farewell");
        };
        assert_eq!((frame.code, frame.reason.len()), (CloseCode::Policy, 122));
        farewell(&mut client);
    }
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn shutting_down_says_farewell() {
    let server = start(Server::new().websocket("/", echo));
    let mut client = connect(&server);
    client.send("hello".into()).unwrap();
    assert_eq!(client.read().unwrap(), Message::from("hello"));
    let reader = std::thread::spawn(move || farewell(&mut client));
    assert_eq!(server.shutdown(), 0);
    assert_eq!(reader.join().unwrap(), Some(CloseCode::Away));
}

#[test]
fn what_is_too_large_or_no_message_is_refused() {
    let limits = Limits::default().body(1000);
    let server = start(Server::new().websocket("/", echo).limits(limits));
    let mut client = connect(&server);
    client.send(Message::from(vec![0; 1001])).unwrap();
    assert_eq!(farewell(&mut client), Some(CloseCode::Size));
    // Also if much of it has not been read by then.
    let mut client = connect(&server);
    client.send(Message::from(vec![0; 500_000])).unwrap();
    assert_eq!(farewell(&mut client), Some(CloseCode::Size));
    let mut client = connect(&server);
    // A frame that is not masked.
    std::io::Write::write_all(client.get_mut(), b"\x81\x02hi").unwrap();
    assert_eq!(farewell(&mut client), Some(CloseCode::Protocol));
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_handler_that_fails_tells_the_client() {
    let fail = |_: WebSocket| Err(std::io::Error::other("on purpose"));
    let server = start(Server::new().websocket("/", fail));
    assert_eq!(farewell(&mut connect(&server)), Some(CloseCode::Error));
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn what_asks_for_no_websocket_gets_none() {
    let http = Server::new().websocket("/", echo).client();
    let answer = http.get("/");
    assert_eq!(answer.status, Status::UPGRADE_REQUIRED);
    assert_eq!(answer.headers["upgrade"], "websocket");
    assert_eq!(http.post("/", "").status, Status::METHOD_NOT_ALLOWED);
    let asks = [
        ("upgrade", "websocket"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let bytes = |version: &str, key: &str| {
        format!(
            "GET / HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, Upgrade\r\nupgrade: WebSocket\r\n\
             sec-websocket-version: {version}\r\nsec-websocket-key: {key}\r\n\r\n"
        )
    };
    let status = |bytes: String| String::from_utf8_lossy(&http.send(bytes.as_bytes())).into_owned();
    let old = status(bytes("8", asks[1].1));
    assert!(
        old.contains(" 426 ") && old.contains("sec-websocket-version: 13"),
        "{old}"
    );
    assert!(status(bytes("13", "short")).contains(" 400 "));
    let good = status(bytes("13", asks[1].1));
    // The key and the answer of RFC 6455, section 1.3.
    assert!(
        good.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        "{good}"
    );
}

#[test]
fn a_request_decides_whether_it_becomes_a_socket() {
    let server = start(Server::new().get("/", |request: &mut Request| -> Response {
        match request.header("origin") {
            Some("https://a.example") => request.websocket(|socket| socket.send("welcome")),
            _ => Response::new(Status::FORBIDDEN),
        }
    }));
    let address = server.local_addr().unwrap();
    let mut request =
        tungstenite::client::IntoClientRequest::into_client_request(format!("ws://{address}/"))
            .unwrap();
    let refused = client(request.clone(), TcpStream::connect(address).unwrap());
    assert!(matches!(
        refused,
        Err(tungstenite::HandshakeError::Failure(Error::Http(_)))
    ));
    request
        .headers_mut()
        .insert("origin", "https://a.example".parse().unwrap());
    let (mut socket, _) = client(request, TcpStream::connect(address).unwrap()).unwrap();
    assert_eq!(socket.read().unwrap(), Message::from("welcome"));
    assert_eq!(server.shutdown(), 0);
}

/// A server whose socket sends until that fails, and then says so.
pub(crate) fn sending_for_ever() -> (Server, mpsc::Receiver<ErrorKind>) {
    let (failed, has_failed) = mpsc::channel();
    let server = Server::new()
        .websocket("/", move |socket| {
            let error = loop {
                if let Err(error) = socket.send(vec![7; 1 << 20]) {
                    break error;
                }
            };
            failed.send(error.kind()).unwrap();
            socket.send("after that").unwrap_err();
            Err(error)
        })
        .timeouts(Timeouts::default().idle(Duration::from_millis(100)));
    (server, has_failed)
}

#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    let (server, has_failed) = sending_for_ever();
    let server = start(server);
    let client = connect(&server);
    assert_eq!(has_failed.recv().unwrap(), ErrorKind::TimedOut);
    while server.connections() > 0 {
        std::thread::yield_now();
    }
    drop(client);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_client_that_reads_nothing_keeps_no_other_thread_either() {
    let (sockets, arrived) = mpsc::channel();
    let server = Server::new()
        .websocket("/", move |mut socket| {
            sockets.send(socket.clone()).unwrap();
            while socket.read()?.is_some() {}
            Ok(())
        })
        .timeouts(Timeouts::default().idle(Duration::from_millis(100)));
    let server = start(server);
    let client = connect(&server);
    let socket = arrived.recv().unwrap();
    while socket.send(vec![7; 1 << 20]).is_ok() {}
    // The thread that waits for messages has seen the end as well.
    while server.connections() > 0 {
        std::thread::yield_now();
    }
    drop(client);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn a_client_sees_the_farewell_of_a_server_that_is_shut_down() {
    let server = start(Server::new().websocket("/", echo));
    let mut client = connect(&server);
    client.send("hello".into()).unwrap();
    assert_eq!(client.read().unwrap(), Message::from("hello"));
    std::thread::scope(|scope| {
        let ended = scope.spawn(|| server.shutdown());
        assert_eq!(farewell(&mut client), Some(CloseCode::Away));
        assert_eq!(ended.join().unwrap(), 0);
    });
}
