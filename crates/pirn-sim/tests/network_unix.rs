//! Pipes and Unix sockets in a simulation: the kernel's, and the waits for them are virtual.

mod common;

use common::passes;
use pirn_sim::{Outcome, Sim};
use std::io::{ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// Returns an abstract address that no other process has.
fn address(name: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("{name}-{}", std::process::id())).unwrap()
}

#[test]
fn threads_talk_by_pipes_and_unix_sockets_and_wait_in_virtual_time() {
    let talk = || {
        let (mut end, mut pipe) = std::io::pipe().unwrap();
        let writer = thread::spawn(move || {
            thread::sleep(3600 * SECOND);
            pipe.write_all(b"by pipe").unwrap();
        });
        let begin = Instant::now();
        let mut text = String::new();
        end.read_to_string(&mut text).unwrap();
        assert_eq!(text, "by pipe");
        assert!(begin.elapsed() >= 3600 * SECOND);
        writer.join().unwrap();

        let listener = UnixListener::bind_addr(&address("talk")).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut byte = [0];
            while stream.read(&mut byte).unwrap() > 0 {
                stream.write_all(&byte).unwrap();
            }
        });
        let clients = UnixStream::connect_addr(&address("talk")).unwrap();
        let mut other = clients.try_clone().unwrap();
        let client = thread::spawn(move || other.write_all(&[7; 100]).unwrap());
        let mut all = [0; 100];
        (&clients).read_exact(&mut all).unwrap();
        assert_eq!(all, [7; 100]);
        client.join().unwrap();
        clients.set_read_timeout(Some(60 * SECOND)).unwrap();
        let begin = Instant::now();
        let error = (&clients).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(begin.elapsed() >= 60 * SECOND);
        drop(clients);
        server.join().unwrap();

        let (one, two) = UnixDatagram::pair().unwrap();
        let sender = thread::spawn(move || {
            for number in 0..100 {
                one.send(&[number]).unwrap(); // The queue of the kernel's is shorter.
            }
        });
        for number in 0..100 {
            let mut byte = [0];
            two.recv(&mut byte).unwrap();
            assert_eq!(byte, [number]);
        }
        sender.join().unwrap();
    };
    passes(Sim::new().run(5, talk));
    let hashes = [0; 5].map(|_| passes(Sim::new().run(5, talk)).hash);
    assert_eq!(hashes, [hashes[0]; 5]);
    Sim::new().seeds(0..50).check(talk);
}

#[test]
fn a_thread_that_waits_for_a_pipe_for_ever_is_a_deadlock() {
    let report = Sim::new().run(1, || {
        let (mut end, _pipe) = std::io::pipe().unwrap();
        let _ = end.read(&mut [0]);
    });
    assert_eq!(report.outcome, Outcome::Deadlock);
}

#[test]
fn a_unix_socket_of_another_process_is_refused_and_reported() {
    const ROLE: &str = "PIRN_TEST_LISTENS";
    if let Ok(name) = std::env::var(ROLE) {
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let _listener = UnixListener::bind_addr(&address).unwrap();
        println!("listens");
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let name = format!("outside-{}", std::process::id());
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("a_unix_socket_of_another_process_is_refused_and_reported")
        .env(ROLE, &name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut output = other.stdout.take().unwrap();
    while !said.contains("listens") {
        let mut byte = [0];
        output.read_exact(&mut byte).unwrap();
        said.push(byte[0].into());
    }
    let report = passes(Sim::new().run(1, move || {
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let error = UnixStream::connect_addr(&address).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }));
    assert_eq!(report.refused.len(), 1, "{:?}", report.refused);
    drop(other.stdin.take());
    other.wait().unwrap();
}
