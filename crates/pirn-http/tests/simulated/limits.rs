//! Limits, and deadlines in virtual time.

use crate::client::{Client, below, nap};
use pirn_http::{Limits, Request, Server, Timeouts, limit_concurrency};
use pirn_sim::net::{self, node};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// A limit is noticed at most so much later: the watch counts in ticks.
const SLACK: Duration = Duration::from_millis(700);

/// Slow clients of all kinds: each gets its answer, or its end, when its time is up.
#[pirn_sim::test(seeds(0..8))]
fn time_limits_hold_however_slow_a_client_is() {
    net::latency(Duration::from_millis(1)..Duration::from_millis(2));
    let [handshake, idle, head, start, handler, upload] =
        [1, 2, 3, 4, 5, 6].map(|_| Duration::from_millis(1500 + below(6000)));
    let _server = node("server", move || {
        let timeouts = Timeouts::default()
            .handshake(handshake)
            .idle(idle)
            .head(head)
            .body(start, 1000)
            .upload(upload)
            .handler(handler);
        Server::new()
            .get("/", || "quick")
            .get("/slow", || {
                let slept = pirn::thread::sleep_interruptible(Duration::from_secs(3600));
                assert!(slept.is_err());
                "late"
            })
            .post("/", |request: &mut Request| request.bytes())
            .timeouts(timeouts)
            .bind("0.0.0.0:80")
            .unwrap()
            .serve()
            .unwrap();
    });
    let in_time = |begin: Instant, limit: Duration, what: &str| {
        let took = begin.elapsed();
        // The server's time begins with what it sends or receives, on the other side of the link.
        let allowed = limit - Duration::from_millis(5)..limit + SLACK;
        assert!(allowed.contains(&took), "{what}: {took:?}, not {limit:?}");
    };
    // Sends a byte now and then.
    let drip = |client: &Client| {
        let mut stream = client.stream().try_clone().unwrap();
        thread::spawn(move || {
            while io_write(&mut stream, b"a") {
                nap(900);
            }
        })
    };
    let idles = thread::spawn(move || {
        let mut client = Client::connect();
        let begin = Instant::now();
        assert!(client.is_over());
        in_time(begin, idle, "the first request");
        let mut client = Client::connect();
        client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
        assert_eq!(client.answer(false).unwrap().body, b"quick");
        let begin = Instant::now();
        assert!(client.is_over());
        in_time(begin, idle, "the next request");
    });
    let heads = thread::spawn(move || {
        let mut client = Client::connect();
        let begin = Instant::now();
        io_write(
            &mut client.stream().try_clone().unwrap(),
            b"GET / HTTP/1.1\r\nx-",
        );
        let dripping = drip(&client);
        assert_eq!(client.answer(false).unwrap().status, 408);
        in_time(begin, head, "the head");
        drop(client);
        dripping.join().unwrap();
    });
    let handlers = thread::spawn(move || {
        let mut client = Client::connect();
        let begin = Instant::now();
        client
            .send(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n")
            .unwrap();
        assert_eq!(client.answer(false).unwrap().status, 503);
        in_time(begin, handler, "the handler");
    });
    let bodies = thread::spawn(move || {
        let mut client = Client::connect();
        let begin = Instant::now();
        let bytes = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n";
        io_write(&mut client.stream().try_clone().unwrap(), bytes);
        let dripping = drip(&client);
        let status = client.answer(false).unwrap().status;
        assert!(matches!(status, 408 | 503), "{status}");
        in_time(begin, start.min(upload).min(handler), "the body");
        drop(client);
        dripping.join().unwrap();
    });
    [idles, heads, handlers, bodies]
        .into_iter()
        .for_each(|it| it.join().unwrap());
}

fn io_write(stream: &mut std::net::TcpStream, bytes: &[u8]) -> bool {
    std::io::Write::write_all(stream, bytes).is_ok()
}

/// More clients than there may be connections, and requests than there may be at once.
#[pirn_sim::test(seeds(0..20), pauses(2000, Duration::from_millis(500)))]
fn no_more_at_once_than_there_may_be_and_all_are_served() {
    net::latency(Duration::from_millis(1)..Duration::from_millis(1 + below(20)));
    let (connections, requests) = (2 + below(3), 1 + below(3));
    let at_work = Arc::new(AtomicU64::new(0));
    let working = Arc::clone(&at_work);
    let _server = node("server", move || {
        let working = Arc::clone(&working);
        let server = Server::new()
            .get("/", move || {
                assert!(working.fetch_add(1, SeqCst) < requests);
                nap(100);
                working.fetch_sub(1, SeqCst);
                "done"
            })
            .with(limit_concurrency(requests as usize))
            .limits(Limits::default().connections(connections as usize))
            .bind("0.0.0.0:80")
            .unwrap()
            .start()
            .unwrap();
        for _ in 0..1000 {
            assert!(server.connections() as u64 <= connections);
            nap(50);
        }
        server.join();
    });
    let clients: Vec<_> = (0..6)
        .map(|_| {
            thread::spawn(move || {
                let mut client = Client::connect();
                let mut done = 0;
                while done < 3 {
                    // An idle connection may be closed for a client that waits.
                    let sent = client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n");
                    match sent.and_then(|()| client.answer(false)) {
                        Ok(answer) if answer.status == 200 => done += 1,
                        Ok(answer) => assert_eq!(answer.status, 503),
                        Err(_) => client = Client::connect(),
                    }
                    nap(200);
                }
            })
        })
        .collect();
    let begin = Instant::now();
    clients.into_iter().for_each(|it| it.join().unwrap());
    assert!(begin.elapsed() < Duration::from_secs(60));
}
