//! Faults of a simulated network.

mod common;

use common::passes;
use pirn_sim::Sim;
use pirn_sim::net::{self, Node, node};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Answers each byte with the same byte, a thread per connection.
fn echo_server() {
    let listener = TcpListener::bind("0.0.0.0:7").unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        thread::spawn(move || {
            let mut byte = [0];
            while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
        });
    }
}

fn echo(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"x")?;
    stream.read_exact(&mut [0])
}

/// Runs a client on a node, with a connection to an echo server, until it returns.
fn with_client(
    client: impl Fn(TcpStream) + Send + Sync + 'static,
    fault: impl Fn(&Node, &Node) + Send + Sync + 'static,
) {
    static DONE: AtomicBool = AtomicBool::new(false);
    DONE.store(false, SeqCst);
    let server = node("server", echo_server);
    let client = node("client", move || {
        thread::sleep(SECOND);
        let mut stream = TcpStream::connect("server:7").unwrap();
        echo(&mut stream).unwrap();
        client(stream);
        DONE.store(true, SeqCst);
    });
    thread::sleep(10 * SECOND);
    fault(&client, &server);
    thread::sleep(10_000 * SECOND);
    assert!(DONE.load(SeqCst), "the client has returned");
}

#[test]
fn a_reset_is_told_to_both_ends_once() {
    passes(Sim::new().run(1, || {
        with_client(
            |mut stream| {
                let error = stream.read(&mut [0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                assert_eq!(stream.read(&mut [0]).unwrap(), 0);
                let error = stream.write(&[0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            },
            net::reset,
        );
    }));
    passes(Sim::new().run(1, || {
        with_client(
            |mut stream| {
                thread::sleep(20 * SECOND);
                let error = stream.write(&[0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            },
            net::reset,
        );
    }));
}

#[test]
fn a_machine_that_vanishes_leaves_its_peers_waiting() {
    passes(Sim::new().run(1, || {
        with_client(
            |mut stream| {
                thread::sleep(20 * SECOND);
                stream.set_read_timeout(Some(60 * SECOND)).unwrap();
                stream.write_all(b"x").unwrap(); // Nothing tells that no machine gets it.
                let error = stream.read(&mut [0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                stream.set_read_timeout(None).unwrap();
                let begin = Instant::now();
                let error = stream.read(&mut [0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                assert!((600..1000).contains(&begin.elapsed().as_secs()));
                let error = TcpStream::connect("server:7").unwrap_err();
                assert_eq!(error.kind(), ErrorKind::TimedOut);
            },
            |_, server| server.vanish(),
        );
    }));
}

#[test]
fn a_machine_that_comes_back_resets_the_connections_that_it_does_not_know() {
    passes(Sim::new().run(1, || {
        with_client(
            |mut stream| {
                thread::sleep(60 * SECOND);
                stream.write_all(b"x").unwrap();
                let error = stream.read(&mut [0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                echo(&mut TcpStream::connect("server:7").unwrap()).unwrap();
            },
            |_, server| {
                server.vanish();
                thread::sleep(10 * SECOND);
                server.restart();
            },
        );
    }));
}

#[test]
fn probes_find_a_machine_that_has_vanished() {
    fn set(stream: &TcpStream, level: i32, option: i32, value: i32) {
        let place = (&raw const value).cast();
        // SAFETY: the option is an int.
        let result = unsafe { libc::setsockopt(stream.as_raw_fd(), level, option, place, 4) };
        assert_eq!(result, 0);
    }
    passes(Sim::new().run(1, || {
        with_client(
            |mut stream| {
                set(&stream, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1);
                set(&stream, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 60);
                let begin = Instant::now();
                let error = stream.read(&mut [0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                assert!((60..1000).contains(&begin.elapsed().as_secs()));
            },
            |_, server| server.vanish(),
        );
    }));
}

#[test]
fn without_acknowledgements_a_sender_gives_up() {
    passes(Sim::new().run(1, || {
        with_client(
            |mut stream| {
                thread::sleep(20 * SECOND);
                stream.write_all(b"x").unwrap();
                let error = stream.read(&mut [0]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::TimedOut);
            },
            |client, server| net::cut(server, client),
        );
    }));
}

#[test]
fn a_link_has_its_own_latency_and_bandwidth() {
    passes(Sim::new().run(1, || {
        net::latency(MS..2 * MS);
        let near = node("near", echo_server);
        let far = node("far", echo_server);
        let slow = node("slow", || {
            let mut bytes = Vec::new();
            let (mut stream, _) = TcpListener::bind("0.0.0.0:9").unwrap().accept().unwrap();
            stream.read_to_end(&mut bytes).unwrap();
            stream.write_all(b"x").unwrap();
        });
        let [to_near, to_far] = [&near, &far].map(|it| SocketAddr::from((it.address(), 7)));
        let own = node("own", move || {
            thread::sleep(SECOND);
            let took = |to: SocketAddr| {
                let begin = Instant::now();
                drop(TcpStream::connect(to).unwrap());
                begin.elapsed()
            };
            assert!(took(to_near) < 5 * MS);
            assert!(took(to_far) >= 200 * MS);
            let begin = Instant::now();
            let mut stream = TcpStream::connect("slow:9").unwrap();
            stream.write_all(&[0; 500_000]).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            stream.read_exact(&mut [0]).unwrap();
            let seconds = begin.elapsed().as_secs();
            assert!((50..60).contains(&seconds), "{seconds}");
        });
        net::link(&own, &far).latency(100 * MS..110 * MS);
        net::link(&own, &slow).bandwidth(10_000);
        thread::sleep(1000 * SECOND);
    }));
}

#[test]
fn reads_and_writes_are_short_and_interrupted_where_the_test_asks_for_it() {
    let count = AtomicU32::new(0);
    let run = move || {
        net::short_transfers(0.5);
        net::interrupts(0.1);
        let listener = TcpListener::bind("127.0.0.1:9").unwrap();
        let sender = thread::spawn(|| {
            let mut stream = TcpStream::connect("127.0.0.1:9").unwrap();
            for _ in 0..20 {
                stream.write_all(&[7; 1000]).unwrap();
            }
        });
        let (mut stream, _) = listener.accept().unwrap();
        let mut whole = Vec::new();
        let mut buffer = [0; 1000];
        let (mut shorts, mut interrupts) = (0, 0);
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    shorts += u32::from(read < 1000);
                    whole.extend_from_slice(&buffer[..read]);
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Interrupted);
                    interrupts += 1;
                }
            }
        }
        assert!(shorts > 5 && interrupts > 0, "{shorts} {interrupts}");
        assert_eq!(whole, [7; 20_000]);
        sender.join().unwrap();
        count.fetch_add(1, SeqCst);
    };
    let run = std::sync::Arc::new(run);
    let hashes = [0; 4].map(|_| {
        let run = run.clone();
        passes(Sim::new().run(3, move || run())).hash
    });
    assert_eq!(hashes[1..], [hashes[1]; 3]); // The first one makes lazy values.
}

#[test]
fn a_node_runs_out_of_descriptors_and_has_them_again() {
    passes(Sim::new().run(1, || {
        let own = node("own", || {
            thread::sleep(SECOND);
            let listener = TcpListener::bind("127.0.0.1:9").unwrap();
            let client = TcpStream::connect("127.0.0.1:9").unwrap();
            let full = listener.accept().unwrap_err();
            assert_eq!(full.raw_os_error(), Some(libc::EMFILE));
            let full = TcpStream::connect("127.0.0.1:9").unwrap_err();
            assert_eq!(full.raw_os_error(), Some(libc::EMFILE));
            drop(client);
            listener.accept().unwrap();
        });
        own.descriptors(2);
        thread::sleep(10 * SECOND);
    }));
}

#[test]
fn chaos_does_the_same_again_and_ends_with_a_whole_network() {
    let run = || {
        let nodes: Vec<_> = ["one", "two", "three"]
            .into_iter()
            .map(|name| {
                node(name, || {
                    thread::spawn(echo_server);
                    loop {
                        for peer in ["one:7", "two:7", "three:7"] {
                            thread::sleep(SECOND);
                            let Ok(mut stream) = TcpStream::connect(peer) else {
                                continue;
                            };
                            stream.set_read_timeout(Some(5 * SECOND)).unwrap();
                            let _ = echo(&mut stream);
                        }
                    }
                })
            })
            .collect();
        net::chaos(&nodes, 5 * SECOND, 100 * SECOND);
        thread::sleep(150 * SECOND);
        for peer in ["one:7", "two:7", "three:7"] {
            echo(&mut TcpStream::connect(peer).unwrap()).unwrap();
        }
    };
    let hashes = [0; 4].map(|_| passes(Sim::new().run(7, run)).hash);
    assert_eq!(hashes[1..], [hashes[1]; 3]); // The first one makes lazy values.
    Sim::new().seeds(0..10).check(run);
}
