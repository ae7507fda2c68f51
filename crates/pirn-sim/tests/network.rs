//! `std::net` on a simulated network.

mod common;

use common::{passes, passes_alike};
use pirn_sim::Sim;
use pirn_sim::net::{self, node};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Answers each line with the same line, a thread per connection.
fn echo_server() {
    let listener = TcpListener::bind("0.0.0.0:7").unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 1000];
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) | Err(_) => return,
                    Ok(count) => stream.write_all(&buffer[..count]).unwrap(),
                }
            }
        });
    }
}

/// Connects until there is a server.
fn connect(to: &str) -> TcpStream {
    loop {
        match TcpStream::connect(to) {
            Ok(stream) => return stream,
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionRefused),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn echo(stream: &mut TcpStream, text: &[u8]) {
    stream.write_all(text).unwrap();
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, text);
}

#[test]
fn clients_and_a_server_talk_by_name_and_see_addresses() {
    let talk = || {
        net::latency(Duration::from_millis(10)..Duration::from_millis(20));
        let server = node("server", echo_server);
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let server = server.clone();
                thread::spawn(move || {
                    let mut stream = connect("server:7");
                    let peer = SocketAddr::from((server.address(), 7));
                    assert_eq!(stream.peer_addr().unwrap(), peer);
                    assert_eq!(
                        stream.local_addr().unwrap().ip(),
                        Ipv4Addr::new(10, 0, 0, 1)
                    );
                    let begin = Instant::now();
                    echo(&mut stream, b"hello");
                    assert!(begin.elapsed() >= Duration::from_millis(20));
                    echo(&mut stream, &[7; 100_000][..1000]);
                })
            })
            .collect();
        clients.into_iter().for_each(|it| it.join().unwrap());
    };
    passes_alike(talk);
}

#[test]
fn what_is_not_there_refuses_or_is_unreachable() {
    passes(Sim::new().run(1, || {
        let refused = TcpStream::connect("10.0.0.1:9").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let none = TcpStream::connect("10.9.9.9:9").unwrap_err();
        assert_eq!(none.kind(), ErrorKind::HostUnreachable);
        let _first = TcpListener::bind("127.0.0.1:80").unwrap();
        let second = TcpListener::bind("127.0.0.1:80").unwrap_err();
        assert_eq!(second.kind(), ErrorKind::AddrInUse);
        let other = TcpListener::bind("10.0.0.2:80").unwrap_err();
        assert_eq!(other.kind(), ErrorKind::AddrNotAvailable);
    }));
}

#[test]
fn a_connection_with_a_timeout_is_made_or_times_out() {
    passes(Sim::new().run(1, || {
        let server = node("server", echo_server);
        drop(connect("server:7"));
        let to = SocketAddr::from((server.address(), 7));
        let second = Duration::from_secs(1);
        let mut stream = TcpStream::connect_timeout(&to, second).unwrap();
        echo(&mut stream, b"hello");
        let own = node("client", move || {
            thread::sleep(Duration::from_secs(1));
            let begin = Instant::now();
            let error = TcpStream::connect_timeout(&to, second).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert!(begin.elapsed() < 2 * second);
        });
        net::partition(&own, &server);
        thread::sleep(Duration::from_secs(60));
        let refused = SocketAddr::from((server.address(), 8));
        let error = TcpStream::connect_timeout(&refused, second).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }));
}

#[test]
fn a_partition_delays_and_a_read_with_a_timeout_ends() {
    passes(Sim::new().run(1, || {
        let server = node("server", echo_server);
        let client = node("client", || {
            let mut stream = connect("server:7");
            echo(&mut stream, b"before");
            thread::sleep(Duration::from_secs(10));
            stream
                .set_read_timeout(Some(Duration::from_secs(2)))
                .unwrap();
            stream.write_all(b"x").unwrap();
            let mut byte = [0];
            let error = stream.read(&mut byte).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            stream.set_read_timeout(None).unwrap();
            let begin = Instant::now();
            stream.read_exact(&mut byte).unwrap();
            assert!(begin.elapsed() > Duration::from_secs(10));
        });
        thread::sleep(Duration::from_secs(5));
        net::partition(&client, &server);
        thread::sleep(Duration::from_secs(25));
        net::heal(&client, &server);
        thread::sleep(Duration::from_secs(100));
    }));
}

#[test]
fn a_node_that_crashes_ends_its_connections_and_comes_back() {
    let crash = || {
        static STARTS: AtomicU32 = AtomicU32::new(0);
        STARTS.store(0, SeqCst);
        let server = node("server", || {
            STARTS.fetch_add(1, SeqCst);
            echo_server();
        });
        let mut stream = connect("server:7");
        echo(&mut stream, b"before");
        server.crash();
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
        let refused = TcpStream::connect("server:7").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        server.restart();
        echo(&mut connect("server:7"), b"after");
        assert_eq!(STARTS.load(SeqCst), 2);
    };
    Sim::new().seeds(0..50).check(crash);
}

#[test]
fn much_goes_through_a_slow_link_in_order_and_losses_are_made_up() {
    passes(Sim::new().run(1, || {
        net::latency(Duration::from_millis(50)..Duration::from_millis(51));
        net::loss(0.1);
        let sum = Arc::new(Mutex::new(0_u64));
        let place = Arc::clone(&sum);
        node("sink", move || {
            let (mut stream, _) = TcpListener::bind("0.0.0.0:9").unwrap().accept().unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            assert!(all.iter().enumerate().all(|(at, byte)| *byte == at as u8));
            *place.lock().unwrap() = all.len() as u64;
            stream.write_all(b"done").unwrap();
        });
        let mut stream = connect("sink:9");
        let bytes: Vec<_> = (0..1_000_000).map(|at| at as u8).collect();
        stream.write_all(&bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!((answer.as_str(), *sum.lock().unwrap()), ("done", 1_000_000));
    }));
}

#[test]
fn the_calendar_of_a_node_may_be_wrong_and_its_timeouts_are_not() {
    passes(Sim::new().run(1, || {
        let true_time = SystemTime::now();
        let day = Duration::from_secs(86_400);
        let seen = Arc::new(Mutex::new(None));
        let place = Arc::clone(&seen);
        let wrong = node("wrong", move || {
            thread::sleep(Duration::from_secs(1));
            let begin = Instant::now();
            let calendar = SystemTime::now();
            thread::sleep(Duration::from_secs(5));
            assert_eq!(begin.elapsed().as_secs(), 5);
            *place.lock().unwrap() = Some(calendar);
        });
        wrong.set_clock_behind(day);
        thread::sleep(Duration::from_secs(10));
        let calendar = seen.lock().unwrap().unwrap();
        let behind = true_time.duration_since(calendar).unwrap();
        assert!(behind > day - Duration::from_secs(2) && behind < day);
    }));
}

#[test]
fn no_thread_of_a_node_goes_on_while_it_pauses() {
    let pause = || {
        let ticks = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&ticks);
        let node = node("ticks", move || {
            let other = Arc::clone(&count);
            let tick = move || loop {
                thread::sleep(Duration::from_secs(1));
                other.fetch_add(1, SeqCst);
            };
            thread::spawn(tick.clone());
            tick();
        });
        thread::sleep(Duration::from_millis(10_500));
        assert_eq!(ticks.load(SeqCst), 20);
        node.pause(Duration::from_secs(10));
        thread::sleep(Duration::from_millis(9_900));
        assert_eq!(ticks.load(SeqCst), 20);
        thread::sleep(Duration::from_millis(5_600));
        assert!((30..=32).contains(&ticks.load(SeqCst)), "{ticks:?}");
    };
    Sim::new().seeds(0..20).check(pause);
}
