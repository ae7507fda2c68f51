//! What `pirn serve --proxy` does when a request's body and its answer flow at the same time.

use super::hostile::{behind, head, until_closed};
use super::serve;
use super::streaming::{Next, Receiver, Sender, frame, post};
use pirn_testing::Server;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// A window of HTTP/2 that lets all come.
const ALL: u32 = 0x7fff_ffff;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Sends each chunk of a request's body back as soon as the proxy has sent it. Returns whether the
/// body was whole.
fn echo(mut stream: &TcpStream) -> bool {
    stream.write_all(HEAD).unwrap();
    let (mut piece, mut last) = (vec![0; 65_536], Vec::new());
    while !last.ends_with(b"0\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(count @ 1..) => {
                last.extend_from_slice(&piece[..count]);
                last.drain(..last.len().saturating_sub(7));
                if stream.write_all(&piece[..count]).is_err() {
                    return false;
                }
            }
            _ => return false,
        }
    }
    true
}

/// Bytes in which no end of a body is.
fn bytes(from: usize, count: usize) -> Vec<u8> {
    (from..from + count).map(|at| (at % 251) as u8).collect()
}

/// The most memory that the proxy has had, in KiB.
fn most_memory(proxy: &Server) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", proxy.pid())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = most.unwrap().trim().strip_suffix(" kB").unwrap();
    kib.parse().unwrap()
}

#[test]
fn an_echo_of_64_mb_flows_both_ways_at_once() {
    const LENGTH: usize = 64 << 20;
    const PIECE: usize = 100_000;
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let url = behind(move |_, stream| {
        count.fetch_add(1, SeqCst);
        while head(&stream) && echo(&stream) {}
    });
    let proxy = serve(&["--proxy", &url, "--timeout", "5"]);
    for is_http2 in [false, true] {
        let (mut sender, mut receiver) = post(&proxy, is_http2, ALL);
        let sent = thread::spawn(move || {
            for from in (0..LENGTH).step_by(PIECE) {
                sender.send(&bytes(from, PIECE.min(LENGTH - from))).unwrap();
            }
            sender.end().unwrap();
            sender
        });
        let mut length = 0;
        loop {
            match receiver.next() {
                Next::Piece(piece) => {
                    assert_eq!(piece, bytes(length, piece.len()), "HTTP/2: {is_http2}");
                    length += piece.len();
                }
                end => break assert_eq!((end, length), (Next::End, LENGTH), "HTTP/2: {is_http2}"),
            }
        }
        sent.join().unwrap();
    }
    assert!(most_memory(&proxy) < 64 << 10);
    assert_eq!(
        connections.load(SeqCst),
        1,
        "the connection can be used again"
    );
}

#[test]
fn a_client_that_sends_all_before_it_reads_keeps_neither_direction_waiting() {
    const LENGTH: usize = 64 << 20;
    let url = behind(|_, mut stream| {
        head(&stream);
        let reading = stream.try_clone().unwrap();
        let reader =
            thread::spawn(move || io::copy(&mut reading.take(LENGTH as u64), &mut io::sink()));
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"
        )
        .unwrap();
        stream.write_all(&vec![b'x'; LENGTH]).unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), LENGTH as u64);
    });
    let proxy = serve(&["--proxy", &url]);
    let mut client = proxy.connect();
    write!(
        client,
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n"
    )
    .unwrap();
    client.write_all(&vec![b'x'; LENGTH]).unwrap();
    let mut body = client.take(LENGTH as u64);
    assert_eq!(io::copy(&mut body, &mut io::sink()).unwrap(), LENGTH as u64);
}

#[test]
fn the_end_of_an_answer_is_passed_on_before_that_of_the_body() {
    let (seen, has_seen) = mpsc::channel();
    let url = behind(move |number, mut stream| {
        while head(&stream) {
            stream.write_all(HEAD).unwrap();
            stream.write_all(b"2\r\nok\r\n0\r\n\r\n").unwrap();
            let mut body = [0; 10 + 5];
            stream.read_exact(&mut body).unwrap();
            seen.send((number, body)).unwrap();
        }
    });
    let proxy = serve(&["--proxy", &url]);
    for is_http2 in [false, true] {
        let (mut sender, mut receiver) = post(&proxy, is_http2, ALL);
        let mut first = None;
        for again in [false, true] {
            if again {
                let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
                sender.stream.write_all(head).unwrap();
            }
            assert_eq!(receiver.next(), Next::Piece(b"ok".into()));
            assert_eq!(receiver.next(), Next::End);
            sender.send(b"hello").unwrap();
            sender.end().unwrap();
            let (number, body) = has_seen.recv().unwrap();
            assert_eq!(&body, b"5\r\nhello\r\n0\r\n\r\n");
            // The client's next request goes by the same connection.
            assert_eq!(*first.get_or_insert(number), number);
            if is_http2 {
                break;
            }
        }
    }
}

#[test]
fn a_server_that_closes_after_its_answer_still_gets_the_body() {
    let url = behind(|_, stream| {
        head(&stream);
        (&stream).write_all(b"HTTP/1.0 200 OK\r\n\r\n").unwrap();
        let mut body = [0; 10 + 5];
        (&stream).read_exact(&mut body).unwrap();
        (&stream).write_all(&body[3..8]).unwrap();
    });
    let proxy = serve(&["--proxy", &url]);
    for is_http2 in [false, true] {
        let (mut sender, mut receiver) = post(&proxy, is_http2, ALL);
        if !is_http2 {
            assert_eq!(receiver.head().unwrap(), "HTTP/1.1 200 OK");
        }
        sender.send(b"hello").unwrap();
        sender.end().unwrap();
        assert_eq!(receiver.at_least(5), b"hello");
        assert_eq!(receiver.next(), Next::End);
    }
}

/// Where a client or a server is, when it goes away or stalls.
#[derive(Clone, Copy, Debug)]
enum When {
    /// The other side has all that was sent.
    Quiet,
    /// So does it, and that is all of the request.
    Sent,
    /// The client sends as much as goes through.
    Full,
}

/// Begins an echo that gets as far as `when`.
fn echoing(proxy: &Server, is_http2: bool, when: When) -> (Sender, Receiver) {
    let (mut sender, mut receiver) = post(proxy, is_http2, 65_535);
    sender.send(b"hello").unwrap();
    assert_eq!(receiver.at_least(5), b"hello");
    match when {
        When::Quiet => {}
        When::Sent => sender.end().unwrap(),
        When::Full => sender.go_on(),
    }
    (sender, receiver)
}

#[test]
fn when_the_client_is_gone_so_is_the_connection_to_the_server() {
    let (gone, is_gone) = mpsc::channel();
    let url = behind(move |_, mut stream| {
        head(&stream);
        stream.write_all(HEAD).unwrap();
        let mut piece = [0; 65_536];
        // It echoes until the end of the body, and then says nothing, and waits.
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            let piece = &piece[..count];
            let last = piece.strip_suffix(b"0\r\n\r\n").unwrap_or(piece);
            if stream.write_all(last).is_err() {
                break;
            }
        }
        gone.send(()).unwrap();
    });
    let proxy = serve(&["--proxy", &url]);
    for is_http2 in [false, true] {
        for when in [When::Quiet, When::Sent, When::Full] {
            let (sender, _receiver) = echoing(&proxy, is_http2, when);
            sender.stream.shutdown(Shutdown::Both).unwrap();
            is_gone.recv().unwrap();
        }
    }
    // A stream of HTTP/2 that is cancelled, on a connection that stays.
    let (mut sender, _receiver) = echoing(&proxy, true, When::Quiet);
    sender
        .stream
        .write_all(&frame(3, 0, 1, &[0, 0, 0, 8]))
        .unwrap();
    is_gone.recv().unwrap();
}

#[test]
fn when_the_server_is_gone_the_client_sees_it() {
    for when in [When::Quiet, When::Sent, When::Full] {
        let (leave, may_leave) = mpsc::channel::<()>();
        let may_leave = Mutex::new(may_leave);
        let url = behind(move |_, mut stream| {
            head(&stream);
            stream.write_all(HEAD).unwrap();
            let mut first = [0; 10];
            stream.read_exact(&mut first).unwrap();
            stream.write_all(&first).unwrap();
            let _ = may_leave.lock().unwrap().recv();
            let _ = stream.shutdown(Shutdown::Both);
        });
        let proxy = serve(&["--proxy", &url]);
        for is_http2 in [false, true] {
            let (_sender, mut receiver) = echoing(&proxy, is_http2, when);
            leave.send(()).unwrap();
            assert_eq!(receiver.end(), Next::Broken, "{when:?}, HTTP/2: {is_http2}");
        }
    }
}

#[test]
fn a_server_that_stalls_in_the_middle_of_both_is_given_up() {
    for when in [When::Sent, When::Full] {
        let url = behind(move |_, mut stream| {
            head(&stream);
            stream.write_all(HEAD).unwrap();
            let mut first = [0; 10];
            stream.read_exact(&mut first).unwrap();
            stream.write_all(&first).unwrap();
            match when {
                When::Full => thread::park(), // It reads nothing.
                _ => until_closed(stream),
            }
        });
        let proxy = serve(&["--proxy", &url, "--timeout", "1"]);
        for is_http2 in [false, true] {
            let (_sender, mut receiver) = echoing(&proxy, is_http2, when);
            assert_eq!(receiver.end(), Next::Broken, "{when:?}, HTTP/2: {is_http2}");
        }
    }
}

#[test]
fn a_client_that_stalls_in_the_middle_of_its_body_is_cut_off() {
    let url = behind(move |_, stream| {
        head(&stream);
        echo(&stream);
    });
    let proxy = serve(&["--proxy", &url]);
    for is_http2 in [false, true] {
        let (_sender, mut receiver) = echoing(&proxy, is_http2, When::Quiet);
        assert_eq!(receiver.end(), Next::Broken, "HTTP/2: {is_http2}");
    }
}

#[test]
fn a_server_is_not_late_while_it_waits_for_the_client() {
    let url = behind(|_, stream| while head(&stream) && echo(&stream) {});
    let proxy = serve(&["--proxy", &url, "--timeout", "1"]);
    for is_http2 in [false, true] {
        // It waits for more of the request.
        let (mut sender, mut receiver) = post(&proxy, is_http2, ALL);
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(1500));
            sender.send(b"hello").unwrap();
            assert_eq!(receiver.at_least(5), b"hello");
        }
        sender.end().unwrap();
        assert_eq!(receiver.next(), Next::End);
    }
    // It takes nothing of the request, as nothing of the answer is taken.
    let (_sender, mut receiver) = echoing(&proxy, false, When::Full);
    thread::sleep(Duration::from_millis(3500));
    assert!(receiver.at_least(4 << 20).len() >= 4 << 20);
}
