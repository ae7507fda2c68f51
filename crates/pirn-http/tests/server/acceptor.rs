//! Servers of other protocols than HTTP.

use pirn_http::{Limits, Timeouts, Upgraded, tcp_acceptor};
use pirn_testing::patient;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

/// Answers each line by the same in capitals, until one says `bye`.
fn shout(connection: Upgraded) -> io::Result<()> {
    for line in BufReader::new(&connection).lines() {
        match line?.as_str() {
            "bye" => break,
            line => writeln!(&connection, "{}", line.to_uppercase())?,
        }
    }
    Ok(())
}

fn all_of(mut client: impl Read) -> io::Result<String> {
    let mut all = String::new();
    client.read_to_string(&mut all).map(|_| all)
}

#[test]
fn a_connection_is_closed_when_its_handler_returns() {
    let server = tcp_acceptor(shout).bind("127.0.0.1:0").unwrap();
    let server = server.start().unwrap();
    let mut client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
    client.write_all(b"hello\nworld\nbye\n").unwrap();
    // What the handler has not read does not keep its answers from the client.
    client.write_all(&[b'x'; 100_000]).unwrap();
    assert_eq!(all_of(&client).unwrap(), "HELLO\nWORLD\n");
    drop(client);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn clients_are_told_apart_and_limited() {
    let (peers, seen) = mpsc::channel();
    let whoami = move |connection: Upgraded| {
        peers.send(connection.peer()).unwrap();
        assert!(!connection.is_secure());
        shout(connection)
    };
    let server = tcp_acceptor(whoami).limits(Limits::default().connections(1));
    let server = server.bind("127.0.0.1:0").unwrap().start().unwrap();
    let connect = || TcpStream::connect(server.local_addr().unwrap()).unwrap();
    let (first, second) = (connect(), connect());
    assert_eq!(seen.recv().unwrap(), Some(first.local_addr().unwrap()));
    assert!(seen.try_recv().is_err(), "there is room for one only");
    drop(first);
    assert_eq!(seen.recv().unwrap(), Some(second.local_addr().unwrap()));
    drop(second);
    assert_eq!(server.shutdown(), 0);
}

#[test]
fn shutting_down_wakes_those_that_wait_and_then_interrupts_the_others() {
    let (errors, ended) = mpsc::channel();
    let handler = move |mut connection: Upgraded| {
        let mut kind = [0];
        connection.read_exact(&mut kind)?;
        let error = match kind[0] {
            b'w' => connection.read(&mut kind).unwrap_err().kind(),
            _ => {
                connection.write_all(b"s")?;
                pirn::thread::sleep_interruptible(Duration::from_secs(600)).unwrap_err();
                io::ErrorKind::Interrupted
            }
        };
        errors
            .send((kind[0], error, connection.is_dismissed()))
            .unwrap();
        Ok(())
    };
    let timeouts = Timeouts::default().grace(patient(Duration::from_millis(200)));
    let server = tcp_acceptor(handler).timeouts(timeouts);
    let server = server.bind("127.0.0.1:0").unwrap().start().unwrap();
    let connect = |kind: &[u8]| {
        let mut client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        client.write_all(kind).unwrap();
        client
    };
    let (_waits, mut sleeps) = (connect(b"w"), connect(b"s"));
    sleeps.read_exact(&mut [0]).unwrap();
    assert_eq!(server.shutdown(), 0);
    let mut all = [ended.recv().unwrap(), ended.recv().unwrap()];
    all.sort_by_key(|one| one.0);
    assert_eq!((all[0].0, all[0].2), (b's', false));
    assert_eq!((all[1].0, all[1].2), (b'w', true));
}
