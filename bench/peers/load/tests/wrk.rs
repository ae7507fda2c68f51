//! Reads what wrk 4.1 (Debian's) really printed, and calls it where it is installed.

mod program;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use bench_load::wrk::{Ask, SocketErrors, Wrk, command, parse, upload};
use program::Backend;

#[test]
fn a_run_without_errors() {
    let expected = Wrk {
        requests_per_second: 95_963.11,
        requests: 192_162,
        p50_ms: 168.0 * 1e-3,
        p99_ms: 1.26,
        max_ms: 6.21,
        non_2xx: 0,
        errors: SocketErrors::default(),
    };
    assert_eq!(parse(include_str!("wrk/keep-alive.txt")).unwrap(), expected);
}

#[test]
fn seconds_and_minutes() {
    let slow = parse(include_str!("wrk/slow.txt")).unwrap();
    assert_eq!(
        (slow.requests, slow.p50_ms, slow.max_ms),
        (28, 1200.0, 1200.0)
    );
    let minute = parse(include_str!("wrk/minute.txt")).unwrap();
    assert_eq!((minute.requests, minute.p99_ms), (3, 52_200.0));
}

#[test]
fn lines_about_errors() {
    let not_found = parse(include_str!("wrk/not-found.txt")).unwrap();
    assert_eq!(not_found.non_2xx, not_found.requests);
    assert_eq!(not_found.errors, SocketErrors::default());

    let few = parse(include_str!("wrk/few-descriptors.txt")).unwrap();
    assert_eq!(
        few.errors,
        SocketErrors {
            connect: 25,
            ..SocketErrors::default()
        }
    );

    let all = parse(include_str!("wrk/all-errors.txt")).unwrap();
    let errors = SocketErrors {
        connect: 5,
        read: 3,
        write: 0,
        timeout: 3,
    };
    assert_eq!(
        (all.requests, all.non_2xx, all.errors),
        (21_734, 2_166, errors)
    );
}

#[test]
fn a_run_that_measured_nothing_is_an_error_that_shows_it() {
    let closed = parse(include_str!("wrk/closes-early.txt")).unwrap_err();
    assert!(closed.to_string().contains("read 25564"), "{closed}");
    let slow = parse(include_str!("wrk/too-slow.txt")).unwrap_err();
    assert!(slow.to_string().contains("timeout 7"), "{slow}");
}

#[test]
fn what_wrk_did_not_print_is_an_error() {
    assert!(parse("").is_err());
    let whole = include_str!("wrk/keep-alive.txt");
    for line in [
        "    Latency",
        "     50%",
        "     99%",
        "  192162",
        "Requests/sec",
    ] {
        let kept = whole.lines().filter(|l| !l.starts_with(line));
        let without: String = kept.flat_map(|l| [l, "\n"]).collect();
        assert!(
            without.len() < whole.len() && parse(&without).is_err(),
            "{line}"
        );
        let garbled = whole.replace(line, &format!("{line} x"));
        assert!(parse(&garbled).is_err(), "{garbled}");
    }
}

#[test]
fn the_installed_wrk_is_understood() {
    let backend = Backend::start("0");
    for close in [false, true] {
        let ask = Ask {
            close,
            ..Ask::greeting(backend.port)
        };
        let output = match command(&ask, 3, 1).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return println!("skipped: wrk is not installed");
            }
            output => output.unwrap(),
        };
        let wrk = parse(&String::from_utf8(output.stdout).unwrap()).unwrap();
        assert!(wrk.requests > 0, "{wrk:?}");
        assert_eq!(
            (wrk.non_2xx, wrk.errors),
            (0, SocketErrors::default()),
            "{wrk:?}"
        );
    }
}

#[test]
fn the_installed_wrk_uploads_by_a_script() {
    const LENGTH: u64 = 70_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || receive(&stream.unwrap(), LENGTH));
        }
    });
    let script = std::env::temp_dir().join(format!("bench-load-{}.lua", std::process::id()));
    std::fs::write(&script, upload(LENGTH)).unwrap();
    let ask = Ask {
        path: "/body",
        script: Some(&script),
        ..Ask::greeting(port)
    };
    let output = command(&ask, 2, 1).output();
    std::fs::remove_file(&script).unwrap();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return println!("skipped: wrk is not installed");
        }
        output => output.unwrap(),
    };
    let wrk = parse(&String::from_utf8(output.stdout).unwrap()).unwrap();
    assert_eq!((wrk.non_2xx, wrk.errors), (0, SocketErrors::default()));
}

/// Answers each upload of this many bytes with 200, other requests with 400.
fn receive(mut stream: &TcpStream, length: u64) {
    let mut reader = BufReader::new(stream);
    let (mut line, mut first) = (String::new(), true);
    let (mut is_post, mut is_long) = (false, false);
    while matches!(reader.read_line(&mut line), Ok(1..)) {
        is_post |= first && line.starts_with("POST /body ");
        is_long |= line.trim_end() == format!("Content-Length: {length}");
        first = line == "\r\n";
        if first {
            let mut body = vec![0; if is_long { length as usize } else { 0 }];
            let read = reader.read_exact(&mut body).is_ok();
            let good = is_post && is_long && read && body.iter().all(|&byte| byte == b'x');
            let status = if good { "200 OK" } else { "400 Bad Request" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            if stream.write_all(answer.as_bytes()).is_err() {
                return; // wrk has ended
            }
            (is_post, is_long) = (false, false);
        }
        line.clear();
    }
}
