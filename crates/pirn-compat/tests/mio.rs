//! `mio`: code that brings its own event loop and calls `epoll_wait` itself.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream as StdTcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use pirn::thread;
use pirn_compat::{self as common, Latch, NEVER, THREADS, on_threads, watched};

/// All threads are blocked in `epoll_wait`, half of them with a timeout, before any is woken.
#[watched]
fn wakers_wake_all_event_loops() {
    let (sender, receiver) = mpsc::channel();
    let mut wakers: Vec<Waker> = Vec::new(); // a waker that is dropped wakes no loop
    thread::scope(|scope| {
        for index in 0..THREADS {
            let sender = sender.clone();
            scope.spawn(move || {
                let mut poll = Poll::new().unwrap();
                let waker = Waker::new(poll.registry(), Token(index)).unwrap();
                sender.send(waker).unwrap();
                let mut events = Events::with_capacity(4);
                let timeout = (index % 2 == 0).then_some(NEVER);
                poll.poll(&mut events, timeout).unwrap();
                let tokens: Vec<_> = events.iter().map(|event| event.token()).collect();
                assert_eq!(tokens, [Token(index)]);
            });
        }
        wakers.extend(receiver.iter().take(THREADS));
        wakers.iter().for_each(|waker| waker.wake().unwrap());
    });
}

#[watched]
fn poll_timeouts_fire_for_all_event_loops() {
    const TIMEOUT: Duration = Duration::from_millis(50);
    on_threads(THREADS, |_| {
        let mut poll = Poll::new().unwrap();
        let mut events = Events::with_capacity(4);
        let start = Instant::now();
        poll.poll(&mut events, Some(TIMEOUT)).unwrap();
        assert!(start.elapsed() >= TIMEOUT);
        assert!(events.is_empty());
    });
}

/// An echo server that serves all its clients from one event loop, until they have all left.
struct EchoLoop {
    poll: Poll,
    listener: TcpListener,
    clients: Vec<Option<TcpStream>>,
}

impl EchoLoop {
    const LISTENER: Token = Token(usize::MAX);

    fn new() -> (Self, SocketAddr) {
        let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let poll = Poll::new().unwrap();
        poll.registry()
            .register(&mut listener, Self::LISTENER, Interest::READABLE)
            .unwrap();
        let server = EchoLoop {
            poll,
            listener,
            clients: Vec::new(),
        };
        (server, address)
    }

    /// Serves this many clients and returns when the last has hung up.
    fn serve(mut self, clients: usize) {
        let mut events = Events::with_capacity(64);
        let mut gone = 0;
        while gone < clients {
            self.poll.poll(&mut events, None).unwrap();
            for event in &events {
                match event.token() {
                    Self::LISTENER => self.accept().unwrap(),
                    Token(index) => gone += usize::from(self.echo(index).unwrap()),
                }
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Some((mut client, _)) = unless_it_would_block(self.listener.accept())? {
            let token = Token(self.clients.len());
            let registry = self.poll.registry();
            registry.register(&mut client, token, Interest::READABLE)?;
            self.clients.push(Some(client));
        }
        Ok(())
    }

    /// Sends back what there is to read; says whether the client has hung up.
    fn echo(&mut self, index: usize) -> io::Result<bool> {
        let Some(client) = &mut self.clients[index] else {
            return Ok(false); // an event from before it hung up
        };
        let mut buffer = [0; 256];
        while let Some(length) = unless_it_would_block(client.read(&mut buffer))? {
            if length == 0 {
                self.clients[index] = None;
                return Ok(true);
            }
            client.write_all(&buffer[..length])?; // far less than the socket's buffer holds
        }
        Ok(false)
    }
}

fn unless_it_would_block<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

#[watched]
fn blocking_clients_of_one_event_loop() {
    let (server, address) = EchoLoop::new();
    let connected = Latch::new(THREADS);
    thread::scope(|scope| {
        scope.spawn(|| server.serve(THREADS));
        on_threads(THREADS, |index| {
            let mut socket = StdTcpStream::connect(address).unwrap();
            connected.arrive_and_wait();
            for round in 0..10 {
                let sent = [index as u8, round];
                socket.write_all(&sent).unwrap();
                let mut received = [0; 2];
                socket.read_exact(&mut received).unwrap();
                assert_eq!(received, sent);
            }
        });
    });
}
