//! What `pirn serve --proxy` does when the server behind it is slow, breaks off, or sends what is
//! no answer.

use super::PIRN_SERVE;
use super::{ask, get, serve};
use pirn_testing::Server;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;

/// A server that calls `serve` with each connection, and its number, on a thread of its own.
pub(crate) fn behind(serve: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(number, stream.unwrap()));
        }
    });
    format!("http://{address}")
}

/// Reads the head of a request; `false` if the connection ends before.
pub(crate) fn head(stream: &TcpStream) -> bool {
    let mut lines = BufReader::with_capacity(1, stream).lines(); // The body is left where it is.
    lines.any(|line| line.is_ok_and(|line| line.is_empty()))
}

/// A proxy before a server that answers each request with these bytes, and closes the connection.
fn answering(bytes: impl Into<Vec<u8>>) -> Server {
    let bytes = bytes.into();
    let url = behind(move |_, mut stream| {
        head(&stream);
        let _ = stream.write_all(&bytes);
    });
    serve(&["--proxy", &url, "--timeout", "2"])
}

/// Waits until the other side is gone.
pub(crate) fn until_closed(mut stream: TcpStream) {
    while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn what_is_no_answer_is_a_bad_gateway() {
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "no answer\r\n\r\n",
        "HTTP/9.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ] {
        let answer = get(&answering(bytes), "/");
        assert!(answer.starts_with("HTTP/1.1 502 "), "{bytes:?}: {answer}");
        assert!(!answer.contains("transfer-encoding"), "{bytes:?}: {answer}");
    }
}

#[test]
fn a_head_without_end_is_a_bad_gateway() {
    let url = behind(|_, mut stream| {
        head(&stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"x-again: and again\r\n").is_ok() {}
    });
    let proxy = serve(&["--proxy", &url, "--timeout", "20"]);
    let answer = get(&proxy, "/");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}

#[test]
fn interim_answers_are_no_answers() {
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
    let proxy = answering([early.as_bytes(), OK].concat());
    let answer = get(&proxy, "/");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
}

#[test]
fn broken_bodies_are_no_whole_answers() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n";
    for rest in [
        "",
        "x\r\n",
        "-1\r\na\r\n",
        "ffffffffffffffffff\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "2\nab\n0\n\n",
        "2\nab\r\n0\r\n\r\n",
        "2\r\nab\n0\r\n\r\n",
        "0\n\r\n",
        "0\r\n\n",
        "2 2\r\nab\r\n0\r\n\r\n",
        "+2\r\nab\r\n0\r\n\r\n",
    ] {
        let answer = get(&answering(format!("{chunked}{rest}")), "/");
        assert!(!answer.ends_with("0\r\n\r\n"), "{rest:?}: {answer}");
    }
}

#[test]
fn a_server_that_stalls_is_given_up() {
    // In the middle of its answer: what has come is passed on, and the client sees what is missing.
    let url = behind(|_, mut stream| {
        head(&stream);
        let start = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
        stream.write_all(start).unwrap();
        until_closed(stream);
    });
    let answer = get(&serve(&["--proxy", &url, "--timeout", "1"]), "/");
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");

    // In the middle of the request's body, which is more than sockets hold.
    let (done, is_done) = mpsc::channel::<()>();
    let is_done = std::sync::Mutex::new(is_done);
    let url = behind(move |_, stream| {
        head(&stream);
        let _ = is_done.lock().unwrap().recv();
    });
    let proxy = serve(&["--proxy", &url, "--timeout", "1"]);
    let mut client = proxy.connect();
    let length = 64 << 20;
    let request = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let mut sender = client.try_clone().unwrap();
    let sent = thread::spawn(move || sender.write_all(&vec![b'x'; length]));
    let mut start = [0; 13];
    client.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 504 ");
    drop(client);
    let _ = sent.join().unwrap();
    drop(done);

    // In the middle of the head of an answer to a request for another protocol, byte for byte.
    let url = behind(|_, mut stream| {
        head(&stream);
        let start = b"HTTP/1.1 101 Switching Protocols\r\nx: ";
        stream.write_all(start).unwrap();
        while stream.write_all(b"y").is_ok() {
            thread::sleep(std::time::Duration::from_millis(100));
        }
    });
    let proxy = serve(&["--proxy", &url, "--timeout", "1"]);
    let upgrade = ["GET / HTTP/1.1", "Connection: upgrade, close", "Upgrade: x"];
    let answer = ask(&proxy, &upgrade, "");
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
}

#[test]
fn only_what_does_no_harm_twice_is_asked_a_second_time() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let url = behind(move |_, mut stream| {
        // The first request of a connection is answered, and the second one ends it.
        if head(&stream) {
            count.fetch_add(1, SeqCst);
            stream.write_all(OK).unwrap();
        }
        if head(&stream) {
            count.fetch_add(1, SeqCst);
        }
    });
    let proxy = serve(&["--proxy", &url]);
    assert!(get(&proxy, "/").starts_with("HTTP/1.1 200 "));
    assert!(get(&proxy, "/").starts_with("HTTP/1.1 200 "));
    assert_eq!(
        asked.load(SeqCst),
        3,
        "GET: on a kept connection, and again on another"
    );
    let answer = ask(&proxy, &["POST / HTTP/1.1", "Content-Length: 0"], "");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(
        asked.load(SeqCst),
        4,
        "POST: on a kept connection, and never again"
    );
    for _ in 0..2 {
        let answer = ask(&proxy, &["DELETE / HTTP/1.1"], "");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    assert_eq!(
        asked.load(SeqCst),
        7,
        "DELETE: on a new connection, on that, and again on another"
    );
    let answer = ask(&proxy, &["PUT / HTTP/1.1", "Content-Length: 1"], "x");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(
        asked.load(SeqCst),
        8,
        "PUT: its body has been read, and cannot be sent again"
    );
}

#[test]
fn nothing_is_asked_a_second_time_of_a_server_that_has_seen_it() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let url = behind(move |_, stream| {
        if head(&stream) {
            count.fetch_add(1, SeqCst);
        }
    });
    let answer = get(&serve(&["--proxy", &url]), "/");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(asked.load(SeqCst), 1, "its connection is a new one");

    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let url = behind(move |_, mut stream| {
        for answer in [OK, &OK[..20]] {
            if head(&stream) {
                count.fetch_add(1, SeqCst);
                stream.write_all(answer).unwrap();
            }
        }
    });
    let proxy = serve(&["--proxy", &url]);
    assert!(get(&proxy, "/").starts_with("HTTP/1.1 200 "));
    let answer = get(&proxy, "/");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(asked.load(SeqCst), 2, "something of an answer has come");
}

#[test]
fn an_upload_that_drips_for_ever_is_ended() {
    let url = behind(|_, stream| until_closed(stream));
    let mut command = Command::new(PIRN_SERVE);
    let arguments = ["--listen", "127.0.0.1:0", "--proxy", &url];
    let arguments = command.args(arguments).args(["--upload-timeout", "1"]);
    let mut proxy = Server::start(arguments.stderr(Stdio::piped()));
    let mut client = proxy.connect();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    let mut sender = client.try_clone().unwrap();
    // Faster than the least that any body has to come with.
    let drips = thread::spawn(move || {
        while sender.write_all(b"8\r\n12345678\r\n").is_ok() {
            thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("--upload-timeout"), "{answer}");
    drips.join().unwrap();
    let errors = proxy.running.process.stderr.take().unwrap();
    let line = BufReader::new(errors).lines().next().unwrap().unwrap();
    assert!(
        line.contains("--upload-timeout") && line.contains("127.0.0.1:"),
        "{line}"
    );
}

#[test]
fn a_connection_that_was_closed_while_it_was_not_used_is_not_used_again() {
    let (closed, is_closed) = mpsc::channel();
    let url = behind(move |_, mut stream| {
        if head(&stream) {
            stream.write_all(OK).unwrap();
        }
        drop(stream);
        closed.send(()).unwrap();
    });
    let proxy = serve(&["--proxy", &url]);
    for _ in 0..5 {
        let answer = ask(&proxy, &["POST / HTTP/1.1", "Content-Length: 1"], "x");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        is_closed.recv().unwrap();
    }
}

#[test]
fn the_operator_is_told_which_server_has_failed() {
    let url = behind(|_, stream| {
        head(&stream);
    });
    let mut command = Command::new(PIRN_SERVE);
    let arguments = ["--listen", "127.0.0.1:0", "--proxy", &url];
    let mut proxy = Server::start(command.args(arguments).stderr(Stdio::piped()));
    let errors = proxy.running.process.stderr.take().unwrap();
    assert!(get(&proxy, "/").starts_with("HTTP/1.1 502 "));
    let line = BufReader::new(errors).lines().next().unwrap().unwrap();
    let address = url.strip_prefix("http://").unwrap();
    assert!(line.contains(address), "{line}");
}

#[test]
fn the_operator_is_told_that_a_server_takes_too_long() {
    // Before its answer, and in the middle of it.
    for begun in ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"] {
        let url = behind(move |_, mut stream| {
            head(&stream);
            stream.write_all(begun.as_bytes()).unwrap();
            until_closed(stream);
        });
        let mut command = Command::new(PIRN_SERVE);
        let arguments = ["--listen", "127.0.0.1:0", "--proxy", &url];
        let command = command.args(arguments).args(["--timeout", "1"]);
        let mut proxy = Server::start(command.stderr(Stdio::piped()));
        let errors = proxy.running.process.stderr.take().unwrap();
        get(&proxy, "/");
        let line = BufReader::new(errors).lines().next().unwrap().unwrap();
        assert!(line.ends_with(": it takes too long"), "{line}");
    }
}

#[test]
fn large_bodies_take_no_memory_in_either_direction() {
    const LENGTH: usize = 96 << 20;
    let url = behind(|_, mut stream| {
        head(&stream);
        let mut body = (&stream).take(LENGTH as u64);
        std::io::copy(&mut body, &mut std::io::sink()).unwrap();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"
        )
        .unwrap();
        stream.write_all(&vec![b'x'; LENGTH]).unwrap();
    });
    let proxy = serve(&["--proxy", &url]);
    let body = vec![b'x'; LENGTH]; // Before the head: a client has 5 seconds to begin a body.
    let mut client = proxy.connect();
    let request = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    write!(client, "{request}Content-Length: {LENGTH}\r\n\r\n").unwrap();
    client.write_all(&body).unwrap();
    let mut rest = std::io::sink();
    assert!(std::io::copy(&mut client, &mut rest).unwrap() > LENGTH as u64);
    let status = fs::read_to_string(format!("/proc/{}/status", proxy.pid())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = most.unwrap().trim().strip_suffix(" kB").unwrap();
    let kib = kib.parse::<usize>().unwrap();
    assert!(kib < 64 << 10, "{kib} KiB at most");
}
