//! `mio` and `socket2`.

use mio::net::{TcpListener, TcpStream, UdpSocket};
use mio::{Events, Interest, Poll, Token};
use pirn_sim::net::node;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// Sends back what comes, with an event loop.
fn serve() {
    let mut poll = Poll::new().unwrap();
    let mut listener = TcpListener::bind("0.0.0.0:7".parse().unwrap()).unwrap();
    let mut datagrams = UdpSocket::bind("0.0.0.0:7".parse().unwrap()).unwrap();
    let registry = poll.registry().try_clone().unwrap();
    registry
        .register(&mut listener, Token(0), Interest::READABLE)
        .unwrap();
    registry
        .register(&mut datagrams, Token(1), Interest::READABLE)
        .unwrap();
    let mut streams: Vec<Option<TcpStream>> = Vec::new();
    let mut events = Events::with_capacity(8);
    loop {
        poll.poll(&mut events, None).unwrap();
        for event in &events {
            match event.token() {
                Token(0) => {
                    while let Ok((mut stream, _)) = listener.accept() {
                        let token = Token(2 + streams.len());
                        registry
                            .register(&mut stream, token, Interest::READABLE)
                            .unwrap();
                        streams.push(Some(stream));
                    }
                }
                Token(1) => {
                    let mut bytes = [0; 100];
                    while let Ok((count, from)) = datagrams.recv_from(&mut bytes) {
                        datagrams.send_to(&bytes[..count], from).unwrap();
                    }
                }
                Token(number) => {
                    let place = &mut streams[number - 2];
                    let Some(stream) = place else { continue };
                    let mut bytes = [0; 100];
                    loop {
                        match stream.read(&mut bytes) {
                            Ok(0) => break *place = None,
                            Ok(count) => stream.write_all(&bytes[..count]).unwrap(),
                            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                            Err(_) => break *place = None,
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn an_event_loop_serves_blocking_clients() {
    pirn_sim_unmodified::check("mio, socket2", 100, || {
        let server = node("server", serve);
        thread::sleep(SECOND);
        let to = SocketAddr::from((server.address(), 7));
        let clients: Vec<_> = (0..4)
            .map(|_| {
                thread::spawn(move || {
                    let stream =
                        Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
                    stream.set_read_timeout(Some(10 * SECOND)).unwrap();
                    stream.connect_timeout(&to.into(), SECOND).unwrap();
                    stream.set_tcp_nodelay(true).unwrap();
                    let mut bytes = [0; 5];
                    for _ in 0..3 {
                        (&stream).write_all(b"hello").unwrap();
                        (&stream).read_exact(&mut bytes).unwrap();
                        assert_eq!(&bytes, b"hello");
                    }
                    let begin = Instant::now();
                    let error = (&stream).read(&mut bytes).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    assert_eq!(begin.elapsed().as_secs(), 10);
                    let datagrams = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
                    datagrams.send_to(b"hello", &to.into()).unwrap();
                    (&datagrams).read_exact(&mut bytes).unwrap();
                })
            })
            .collect();
        clients.into_iter().for_each(|it| it.join().unwrap());
    });
}
