//! `tungstenite`: WebSocket servers and clients over TCP on the loopback interface.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use pirn::thread;
use pirn_compat::{self as common, Latch, THREADS, on_threads, watched};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, Message, WebSocket};

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn connect(address: SocketAddr) -> WebSocket<TcpStream> {
    let socket = TcpStream::connect(address).unwrap();
    let (websocket, response) =
        tungstenite::client(format!("ws://{address}/echo"), socket).unwrap();
    assert_eq!(response.status(), 101);
    websocket
}

/// Accepts `THREADS` connections and gives each a thread that runs `handler`; meanwhile runs
/// `client` on as many threads.
fn converse(
    handler: impl Fn(WebSocket<TcpStream>) + Sync,
    client: impl Fn(usize, WebSocket<TcpStream>) + Sync,
) {
    let (listener, address) = listen();
    let handler = &handler;
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..THREADS {
                let (socket, _) = listener.accept().unwrap();
                scope.spawn(|| handler(tungstenite::accept(socket).unwrap()));
            }
        });
        on_threads(THREADS, |index| client(index, connect(address)));
    });
}

/// Echoes text and binary messages until the client closes.
fn echo(websocket: &mut WebSocket<TcpStream>) {
    loop {
        match websocket.read() {
            Ok(message @ (Message::Text(_) | Message::Binary(_))) => {
                websocket.send(message).unwrap();
            }
            Ok(_) => {} // the library answers pings and the close itself
            Err(Error::ConnectionClosed) => return,
            Err(error) => panic!("echo: {error}"),
        }
    }
}

/// Every handler is blocked reading before any client sends, and every client before any handler
/// answers.
#[watched]
fn echo_to_many_connections() {
    let (connected, heard) = (Latch::new(THREADS), Latch::new(THREADS));
    let handler = |mut websocket: WebSocket<TcpStream>| {
        let first = websocket.read().unwrap();
        heard.arrive_and_wait();
        websocket.send(first).unwrap();
        echo(&mut websocket);
    };
    let client = |index: usize, mut websocket: WebSocket<TcpStream>| {
        connected.arrive_and_wait();
        for round in 0..10 {
            let sent = match round % 2 {
                0 => Message::text(format!("client {index}, round {round}")),
                _ => Message::binary(vec![index as u8; 300 * round]),
            };
            websocket.send(sent.clone()).unwrap();
            assert_eq!(websocket.read().unwrap(), sent);
        }
        let ping = Message::Ping(index.to_string().into());
        websocket.send(ping).unwrap();
        let pong = Message::Pong(index.to_string().into());
        assert_eq!(websocket.read().unwrap(), pong);

        let goodbye = CloseFrame {
            code: CloseCode::Normal,
            reason: "done".into(),
        };
        websocket.close(Some(goodbye.clone())).unwrap();
        assert_eq!(websocket.read().unwrap(), Message::Close(Some(goodbye)));
        assert!(matches!(websocket.read(), Err(Error::ConnectionClosed)));
    };
    converse(handler, client);
}

/// One thread sends each message to all; the handlers wait on channels, the clients in reads.
#[watched]
fn broadcast_reaches_every_client_in_order() {
    const MESSAGES: usize = 20;
    let (subscribe, subscriptions) = mpsc::channel::<mpsc::Sender<String>>();
    let handler = |mut websocket: WebSocket<TcpStream>| {
        let (sender, messages) = mpsc::channel();
        subscribe.send(sender).unwrap();
        for message in messages {
            websocket.send(Message::text(message)).unwrap();
        }
        websocket.close(None).unwrap();
        assert!(matches!(websocket.read(), Ok(Message::Close(None))));
        assert!(matches!(websocket.read(), Err(Error::ConnectionClosed)));
    };
    let client = |_, mut websocket: WebSocket<TcpStream>| {
        for number in 0..MESSAGES {
            let expected = Message::text(format!("message {number}"));
            assert_eq!(websocket.read().unwrap(), expected);
        }
        assert_eq!(websocket.read().unwrap(), Message::Close(None));
        assert!(matches!(websocket.read(), Err(Error::ConnectionClosed)));
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let subscribers: Vec<_> = subscriptions.into_iter().take(THREADS).collect();
            for number in 0..MESSAGES {
                for subscriber in &subscribers {
                    subscriber.send(format!("message {number}")).unwrap();
                }
            }
        });
        converse(handler, client);
    });
}

#[watched]
fn a_read_timeout_leaves_the_connection_usable() {
    let timed_out = Latch::new(THREADS);
    let handler = |mut websocket: WebSocket<TcpStream>| {
        timed_out.wait();
        websocket.send(Message::text("late")).unwrap();
        echo(&mut websocket);
    };
    let client = |_, mut websocket: WebSocket<TcpStream>| {
        let timeout = Duration::from_millis(20);
        websocket.get_ref().set_read_timeout(Some(timeout)).unwrap();
        match websocket.read() {
            Err(Error::Io(error)) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            other => panic!("not a timeout: {other:?}"),
        }
        websocket.get_ref().set_read_timeout(None).unwrap();
        timed_out.arrive();
        assert_eq!(websocket.read().unwrap(), Message::text("late"));
        websocket.close(None).unwrap();
        assert_eq!(websocket.read().unwrap(), Message::Close(None));
        assert!(matches!(websocket.read(), Err(Error::ConnectionClosed)));
    };
    converse(handler, client);
}
