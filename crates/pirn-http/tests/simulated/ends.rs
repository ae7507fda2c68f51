//! The end of a server, and of clients.

use crate::client::{Client, below, nap};
use pirn_http::{Limits, Request, Server, Timeouts};
use pirn_sim::net::{self, node};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

fn get(id: u64) -> Vec<u8> {
    format!("GET /{id} HTTP/1.1\r\nhost: a\r\nx-id: {id}\r\n\r\n").into_bytes()
}

/// The server is shut down at any time: what has begun is answered, whole.
fn a_graceful_end() {
    net::latency(Duration::from_millis(1)..Duration::from_millis(1 + below(30)));
    net::loss(below(4) as f64 / 50.0);
    let begun = Arc::new(Mutex::new(BTreeSet::new()));
    let is_down = Arc::new(AtomicBool::new(false));
    let at_once = Duration::from_secs(1 + below(4));
    let (log, down) = (Arc::clone(&begun), Arc::clone(&is_down));
    let _server = node("server", move || {
        let log = Arc::clone(&log);
        let server = Server::new()
            .get("/{id}", move |request: &mut Request| {
                let id: u64 = request.param("id").unwrap();
                assert!(log.lock().unwrap().insert(id), "handled twice");
                let time = Duration::from_millis(below(2000));
                let slept = pirn::thread::sleep_interruptible(time);
                assert!(slept.is_ok(), "interrupted before the grace is over");
                format!("{id} ").repeat(5000)
            })
            .bind("0.0.0.0:80")
            .unwrap()
            .start()
            .unwrap();
        thread::sleep(at_once);
        let begin = Instant::now();
        assert_eq!(server.shutdown(), 0, "connections are left");
        assert!(begin.elapsed() < Duration::from_secs(32));
        assert_eq!(server.connections(), 0);
        down.store(true, SeqCst);
    });
    let ids = Arc::new(AtomicU64::new(0));
    let answered = Arc::new(Mutex::new(BTreeSet::new()));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (ids, answered) = (Arc::clone(&ids), Arc::clone(&answered));
            let is_down = Arc::clone(&is_down);
            thread::spawn(move || {
                let mut client = None;
                while !is_down.load(SeqCst) {
                    nap(100);
                    let connected = match client.take() {
                        Some(client) => Ok(client),
                        None => TcpStream::connect(crate::client::SERVER).map(Client::new),
                    };
                    let Ok(mut connected) = connected else {
                        continue;
                    };
                    let id = ids.fetch_add(1, SeqCst);
                    if connected.send(&get(id)).is_err() {
                        continue;
                    }
                    match connected.answer(false) {
                        Ok(answer) => {
                            assert_eq!(answer.body, format!("{id} ").repeat(5000).as_bytes());
                            answered.lock().unwrap().insert(id);
                            match answer.closes {
                                true => assert!(connected.is_over()),
                                false => client = Some(connected),
                            }
                        }
                        Err(error) => {
                            const GONE: [ErrorKind; 3] = [
                                ErrorKind::UnexpectedEof,
                                ErrorKind::ConnectionReset,
                                ErrorKind::BrokenPipe,
                            ];
                            assert!(GONE.contains(&error.kind()), "{error:?}");
                        }
                    }
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|it| it.join().unwrap());
    let (begun, answered) = (begun.lock().unwrap(), answered.lock().unwrap());
    assert_eq!(*begun, *answered, "what has begun is answered");
    let refused = TcpStream::connect(crate::client::SERVER).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[pirn_sim::test(seeds(0..8))]
fn what_has_begun_is_answered_at_the_end() {
    a_graceful_end();
}

#[pirn_sim::test(seeds(0..8), pauses(1000, Duration::from_secs(1)))]
fn what_has_begun_is_answered_at_the_end_while_threads_pause() {
    a_graceful_end();
}

/// Clients that have connected before the end are served, if their request comes within a second.
#[pirn_sim::test(seeds(0..20))]
fn clients_in_the_queue_are_served_at_the_end() {
    net::latency(Duration::from_millis(1)..Duration::from_millis(1 + below(30)));
    let (begun, is_over) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (begins, over) = (Arc::clone(&begun), Arc::clone(&is_over));
    let _server = node("server", move || {
        let server = Server::new()
            .get("/{id}", |request: &mut Request| {
                request.param::<String>("id").unwrap()
            })
            .limits(Limits::default().connections(1)) // The others wait.
            .bind("0.0.0.0:80")
            .unwrap()
            .start()
            .unwrap();
        nap(100);
        begins.store(true, SeqCst);
        assert_eq!(server.shutdown(), 0);
        over.store(true, SeqCst);
    });
    let clients: Vec<_> = (0..4)
        .map(|id| {
            let begun = Arc::clone(&begun);
            thread::spawn(move || {
                nap(50);
                let Ok(stream) = TcpStream::connect(crate::client::SERVER) else {
                    return;
                };
                let must_be_served = !begun.load(SeqCst);
                let mut client = Client::new(stream);
                nap(300);
                match client.send(&get(id)).and_then(|()| client.answer(false)) {
                    Ok(answer) => assert_eq!(answer.body, id.to_string().as_bytes()),
                    Err(error) => assert!(!must_be_served, "{error:?}"),
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|it| it.join().unwrap());
    thread::sleep(Duration::from_secs(5));
    assert!(is_over.load(SeqCst), "nothing holds it");
}

/// A handler is interrupted when its own client goes, in time, and no other one is.
#[pirn_sim::test(seeds(0..20))]
fn a_handler_ends_with_its_client_and_with_no_other() {
    let longest = 1 + below(30);
    net::latency(Duration::from_millis(1)..Duration::from_millis(1 + longest));
    let gone = Arc::new(Mutex::new(BTreeSet::new()));
    let at_work = Arc::new(AtomicU64::new(0));
    let (left, working) = (Arc::clone(&gone), Arc::clone(&at_work));
    let _server = node("server", move || {
        let (left, working) = (Arc::clone(&left), Arc::clone(&working));
        let server = Server::new().get("/{id}", move |request: &mut Request| {
            let id: u64 = request.param("id").unwrap();
            working.fetch_add(1, SeqCst);
            let end = Duration::from_millis(below(200));
            let slept = pirn::thread::sleep_interruptible(match id % 2 {
                0 => end,
                _ => Duration::from_secs(3600), // Its client goes.
            });
            working.fetch_sub(1, SeqCst);
            let is_gone = left.lock().unwrap().contains(&id);
            assert!(
                slept.is_ok() || is_gone,
                "interrupted while its client waits"
            );
            assert!(id.is_multiple_of(2) || slept.is_err());
            id.to_string()
        });
        let timeouts = Timeouts::default().idle(Duration::from_secs(5));
        server
            .timeouts(timeouts)
            .bind("0.0.0.0:80")
            .unwrap()
            .serve()
            .unwrap();
    });
    let clients: Vec<_> = (0..4)
        .map(|n| {
            let gone = Arc::clone(&gone);
            thread::spawn(move || {
                let mut client = Client::connect();
                for id in 4 * n..4 * n + 4 {
                    nap(30);
                    client.send(&get(id)).unwrap();
                    if id % 2 == 1 {
                        nap(100);
                        gone.lock().unwrap().insert(id);
                        drop(client);
                        client = Client::connect();
                        continue;
                    }
                    let answer = client.answer(false).unwrap();
                    assert_eq!(answer.body, id.to_string().as_bytes());
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|it| it.join().unwrap());
    thread::sleep(Duration::from_millis(longest + 10 + 10));
    assert_eq!(
        at_work.load(SeqCst),
        0,
        "a handler works for a client that is gone"
    );
}
