//! Runs the program against servers good and bad. Asserted are counts, and no times but that an
//! answer takes at least as long as the server waits.

mod program;
mod server;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::time::Duration;

use program::{Backend, PROGRAM, line, report, run};
use serde_json::json;
use server::{Manner, Server};

const USERS: &str = "users --users 20 --requests 3 --ramp-ms 40 --timeout-ms 10000";
const HURRIED: &str = "users --users 20 --requests 3 --ramp-ms 40 --timeout-ms 200";

fn good() -> Server {
    Server::start(Manner::Good(Duration::from_millis(5)))
}

/// The load `open` with this body expected.
fn open(body: &str, timeout_ms: u32) -> String {
    format!(
        "open --connections 20 --ramp-ms 40 --measure-ms 200 --body {body} --timeout-ms {timeout_ms}"
    )
}

/// All of `users` fails, with this reason.
fn all_fail(manner: Manner, args: &str, reason: &str) {
    let server = Server::start(manner);
    let report = report(args, server.port);
    assert_eq!((report.ok, report.errors), (0, 60), "{report:?}");
    assert_eq!(server.requests(), 20, "a user goes on after an error");
    assert!(
        report.first_error.as_ref().unwrap().contains(reason),
        "{report:?}"
    );
}

/// It failed with one line that says why.
fn fails(output: &Output, reason: &str) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let line = line(output);
    let error = line["error"].as_str().unwrap();
    assert!(error.contains(reason), "{error}");
}

#[test]
fn every_request_of_every_user_is_made_and_answered() {
    let server = good();
    let report = report(USERS, server.port);
    assert_eq!((report.ok, report.errors), (60, 0), "{report:?}");
    assert_eq!(server.requests(), 60);
    assert!((1..=20).contains(&report.peak_connections), "{report:?}");
    assert!(report.latency.p50_ms >= Some(5.0), "{report:?}");
    assert!(
        report.latency.mean_ms <= report.latency.max_ms,
        "{report:?}"
    );
}

#[test]
fn wrong_answers_are_errors() {
    all_fail(Manner::WrongBody, USERS, "Hello, Earth!");
    all_fail(Manner::WrongStatus, USERS, "status 503");
    all_fail(Manner::Extra, USERS, "1 bytes after the end");
    let reason = "closed the connection after 20 bytes";
    all_fail(Manner::ClosesEarly, USERS, reason);
}

#[test]
fn no_answer_in_time_is_an_error() {
    all_fail(Manner::Mute, HURRIED, "no answer within 200ms");
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let users = report(USERS, port);
    assert_eq!(
        (users.ok, users.errors, users.peak_connections),
        (0, 60, 0),
        "{users:?}"
    );
    let open = report(&open("x", 1000), port);
    assert_eq!(
        (open.ok, open.errors, open.peak_connections),
        (0, 20, 0),
        "{open:?}"
    );
    fails(&run("get", port), "Connection refused");
}

#[test]
fn open_connections_make_requests_until_the_time_is_over() {
    let server = good();
    // Long, for a machine that is so busy that the client itself comes late.
    let load = open("Hello,_World!", 10_000).replace("-ms 200", "-ms 2000");
    let report = report(&load, server.port);
    assert_eq!(
        (report.errors, report.peak_connections),
        (0, 20),
        "{report:?}"
    );
    assert!(
        report.ok > 0 && report.ok <= server.requests(),
        "{report:?}"
    );
    assert!(report.latency.p50_ms >= Some(5.0), "{report:?}");
}

#[test]
fn echoes_are_counted_with_the_processor_time_that_the_server_took() {
    let server = Server::start(Manner::Echo);
    // The server is in this process.
    let pid = std::process::id();
    let load = format!(
        "open --connections 5 --ramp-ms 20 --measure-ms 2000 --echo --timeout-ms 10000 --server {pid}"
    );
    let report = report(&load, server.port);
    assert_eq!(report.errors, 0, "{report:?}");
    let share = report.server.unwrap();
    assert!(share.cpu_s > 0.0, "{report:?}");
    assert!(
        share.answered > 0 && share.answered <= server.requests(),
        "{report:?}"
    );
}

#[test]
fn an_open_connection_that_fails_counts_once() {
    for (manner, timeout) in [
        (Manner::WrongBody, 10_000),
        (Manner::ClosesEarly, 10_000),
        (Manner::Mute, 100),
    ] {
        let server = Server::start(manner);
        // Long: a connection that comes after it, on a busy machine, would not count.
        let load = open("Hello", timeout).replace("-ms 200", "-ms 2000");
        let report = report(&load, server.port);
        assert_eq!((report.ok, report.errors), (0, 20), "{report:?}");
        assert_eq!(server.requests(), 20);
    }
}

#[test]
fn get_asks_for_a_path_and_posts_a_body() {
    let head = |line: &str, port: u16| format!("{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let get = head("GET /body", port) + "\r\n";
    let post = head("POST /body", port) + "Content-Length: 3\r\n\r\nxxx";
    for (args, expected) in [
        ("get --path /body", get),
        ("get --path /body --post 3", post),
    ] {
        let listener = listener.try_clone().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; expected.len()];
            stream.read_exact(&mut request).unwrap();
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n3";
            stream.write_all(answer.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(request).unwrap(), expected);
        });
        let output = run(args, port);
        assert_eq!(line(&output), json!({ "status": 200, "body": "3" }));
        server.join().unwrap();
    }
}

#[test]
fn get_needs_the_certificate_that_it_is_to_trust() {
    let args = "get --certificate no-such.pem";
    fails(&run(args, good().port), "cannot read no-such.pem");
}

#[test]
fn get_close_wants_the_connection_closed() {
    let closing = Server::start(Manner::ClosesAfterOne);
    assert!(run("get --close", closing.port).status.success());
    fails(&run("get --close", good().port), "not done within 20s");
}

#[test]
fn the_backend_answers_after_its_delay_until_its_input_ends() {
    let backend = Backend::start("20");
    let report = report(USERS, backend.port);
    assert_eq!((report.ok, report.errors), (60, 0), "{report:?}");
    assert!(report.latency.p50_ms >= Some(20.0), "{report:?}");
    assert!(run("get --close", backend.port).status.success());
    let port = backend.port;
    assert!(backend.end());
    fails(&run("get", port), "Connection refused");
}

#[test]
fn too_few_descriptors_are_an_error_that_names_the_remedy() {
    let server = Server::start(Manner::Mute);
    for load in [
        "users --users 100 --requests 1 --ramp-ms 0 --timeout-ms 10000",
        "open --connections 100 --ramp-ms 0 --measure-ms 1 --body x --timeout-ms 1",
    ] {
        let script = format!(
            "ulimit -n 100 && exec {PROGRAM} {load} --port {}",
            server.port
        );
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        fails(
            &output,
            "need 132 file descriptors, but the limit is 100 (`ulimit -n 132`",
        );
    }
}
