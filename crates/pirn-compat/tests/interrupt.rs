//! Blocking calls of other crates on virtual threads that are interrupted.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::yield_now;

use mio::{Events, Poll, Token, Waker};
use pirn::thread::is_interrupt;
use pirn::thread::{self, Thread, ThreadState};
use pirn_compat::{self as common, NEVER, watched};
use rusqlite::Connection;
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};
use ureq::Agent;

/// Whether a virtual thread is parked.
fn waits(thread: &Thread) -> bool {
    thread.state() == Some(ThreadState::Waiting)
}

fn await_waiting(thread: &Thread) {
    while !waits(thread) {
        yield_now();
    }
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Runs `wait` on a virtual thread, and interrupts that once `ready` has returned and it waits.
fn interrupted<T: Send>(wait: impl FnOnce() -> T + Send, ready: impl FnOnce()) -> T {
    thread::scope(|scope| {
        let waiter = scope.spawn(wait);
        ready();
        await_waiting(waiter.thread());
        waiter.thread().interrupt();
        waiter.join().unwrap()
    })
}

/// Asserts that `wait` goes on after an interrupt, asleep, until `release`.
fn goes_on(wait: impl FnOnce() + Send, release: impl FnOnce()) {
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            wait();
            assert!(thread::is_interrupted());
        });
        await_waiting(waiter.thread());
        waiter.thread().interrupt();
        await_waiting(waiter.thread());
        for _ in 0..1000 {
            assert!(waits(waiter.thread()), "it spins");
            yield_now();
        }
        release();
        waiter.join().unwrap();
    });
}

/// `ureq::Error` has no source: what it wraps comes out by `into_io`.
#[watched]
fn a_request_to_a_silent_server_fails() {
    let (listener, address) = listen();
    let agent = Agent::new_with_defaults();
    let mut connection = None;
    let error = interrupted(
        || agent.get(format!("http://{address}/")).call().unwrap_err(),
        || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            connection = Some(stream);
        },
    );
    assert!(is_interrupt(&error.into_io()));
}

#[watched]
fn the_body_of_a_response_fails() {
    let (listener, address) = listen();
    let agent = Agent::new_with_defaults();
    let mut connection = None;
    let (head, has_head) = mpsc::channel();
    let error = interrupted(
        || {
            let response = agent.get(format!("http://{address}/")).call().unwrap();
            head.send(()).unwrap();
            let mut body = response.into_body().into_reader();
            body.read_to_end(&mut Vec::new()).unwrap_err()
        },
        || {
            let (mut stream, _) = listener.accept().unwrap();
            let part = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
            stream.write_all(part).unwrap();
            connection = Some(stream);
            has_head.recv().unwrap();
        },
    );
    assert!(is_interrupt(&error), "{error:?}");
}

#[watched]
fn a_websocket_fails_and_goes_on() {
    let (listener, address) = listen();
    let socket = TcpStream::connect(address).unwrap();
    let mut client = WebSocket::from_raw_socket(socket, Role::Client, None);
    let (socket, _) = listener.accept().unwrap();
    let mut server = WebSocket::from_raw_socket(socket, Role::Server, None);
    let error = interrupted(|| client.read().unwrap_err(), || ());
    assert!(is_interrupt(&error), "{error:?}");
    // Nothing is lost, and the connection still works.
    server.send(Message::text("late")).unwrap();
    let message = thread::spawn(move || client.read().unwrap())
        .join()
        .unwrap();
    assert_eq!(message.into_text().unwrap(), "late");
}

/// SQLite's busy handler sleeps and tries again: an interrupt ends one of its sleeps early, and the
/// call goes on until the database is free or the busy timeout is over.
#[watched]
fn a_busy_database_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.db");
    let holder = Connection::open(&path).unwrap();
    holder
        .execute_batch("CREATE TABLE t (n); BEGIN IMMEDIATE")
        .unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let connection = Connection::open(&path).unwrap();
            connection.busy_timeout(NEVER).unwrap();
            thread::current().interrupt();
            connection.execute("INSERT INTO t VALUES (1)", []).unwrap();
            assert!(thread::is_interrupted());
        });
        await_waiting(writer.thread());
        for _ in 0..1000 {
            yield_now();
        }
        assert!(!writer.is_finished());
        holder.execute_batch("COMMIT").unwrap();
        writer.join().unwrap();
    });
}

#[watched]
fn channels_are_waited_for() {
    let (sender, receiver) = crossbeam_channel::unbounded();
    goes_on(
        || assert_eq!(receiver.recv(), Ok(1)),
        || sender.send(1).unwrap(),
    );
    goes_on(
        || assert_eq!(receiver.recv_timeout(NEVER), Ok(1)),
        || sender.send(1).unwrap(),
    );
    let (sender, receiver) = flume::unbounded();
    goes_on(
        || assert_eq!(receiver.recv(), Ok(1)),
        || sender.send(1).unwrap(),
    );
    goes_on(
        || assert_eq!(receiver.recv_timeout(NEVER), Ok(1)),
        || sender.send(1).unwrap(),
    );
}

#[watched]
fn locks_of_parking_lot_are_waited_for() {
    let mutex = parking_lot::Mutex::new(());
    let guard = mutex.lock();
    goes_on(|| drop(mutex.lock()), || drop(guard));
}

#[watched]
fn an_event_loop_is_told_once() {
    const TOKEN: Token = Token(7);
    let mut poll = Poll::new().unwrap();
    let waker = Waker::new(poll.registry(), TOKEN).unwrap();
    thread::scope(|scope| {
        let event_loop = scope.spawn(|| {
            let mut events = Events::with_capacity(4);
            let error = poll.poll(&mut events, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Interrupted);
            waker.wake().unwrap();
            poll.poll(&mut events, None).unwrap();
            assert_eq!(events.iter().next().unwrap().token(), TOKEN);
            assert!(thread::is_interrupted());
        });
        await_waiting(event_loop.thread());
        event_loop.thread().interrupt();
        event_loop.join().unwrap();
    });
}
