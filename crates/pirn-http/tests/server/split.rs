//! Requests whose body one thread reads while another answers.

use pirn_http::{Limits, Request, Response, Running, Server, Status, Timeouts};
use pirn_testing::patient;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

/// Answers with what `write` writes, while `read` reads the body.
fn both(
    request: &mut Request,
    read: impl FnOnce(&mut dyn Read) -> io::Result<()>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send,
) -> (io::Result<()>, io::Result<()>) {
    let (mut body, responder) = request.split().unwrap();
    pirn::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let mut answer = responder.respond(Response::ok())?;
            write(&mut answer)?;
            answer.end()
        });
        let was_read = read(&mut body);
        (was_read, writer.join().unwrap())
    })
}

/// Serves `/both` with short limits: bodies begin at once, and do not pause for longer.
fn hurried(handler: impl Fn(&mut Request) -> io::Result<()> + Send + Sync + 'static) -> Running {
    let short = patient(Duration::from_millis(300));
    let timeouts = Timeouts::default().idle(short).body(short, 1);
    let server = Server::new().post("/both", handler).timeouts(timeouts);
    server.bind("127.0.0.1:0").unwrap().start().unwrap()
}

fn post(running: &Running, framing: &str) -> TcpStream {
    let mut client = TcpStream::connect(running.local_addr().unwrap()).unwrap();
    let head = format!("POST /both HTTP/1.1\r\nhost: a\r\n{framing}\r\n\r\n");
    client.write_all(head.as_bytes()).unwrap();
    client
}

fn write_for_ever(to: &mut dyn Write) -> io::Result<()> {
    loop {
        to.write_all(&[b'x'; 65_536])?;
    }
}

#[test]
fn an_answer_that_the_client_does_not_take_ends_by_its_own_time_limit() {
    let (tell, told) = mpsc::channel();
    let running = hurried(move |request| {
        // The client goes on with its body, and takes nothing.
        let (was_read, was_written) = both(
            request,
            |body| io::copy(body, &mut io::sink()).map(drop),
            |to| {
                let written = write_for_ever(to);
                tell.send(()).unwrap();
                written
            },
        );
        assert!(was_written.is_err() && was_read.is_ok(), "{was_read:?}");
        was_written
    });
    let mut client = post(&running, "transfer-encoding: chunked");
    while told.try_recv().is_err() {
        client.write_all(b"1\r\na\r\n").unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = client.write_all(b"0\r\n\r\n");
    let _ = client.read_to_end(&mut Vec::new()); // Cut off.
    assert_eq!(running.shutdown(), 0);
}

#[test]
fn a_body_that_stalls_leaves_an_answer_whole_that_has_ended() {
    let running = hurried(|request| {
        let (was_read, was_written) = both(
            request,
            |body| body.read_exact(&mut [0; 20]),
            |to| to.write_all(b"part"),
        );
        was_written.unwrap();
        was_read
    });
    let mut client = post(&running, "content-length: 20");
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("4\r\npart\r\n0\r\n\r\n"), "{answer}");
    assert_eq!(running.shutdown(), 0);
}

#[test]
fn a_body_that_is_refused_leaves_an_answer_that_has_begun_without_an_end() {
    let server = Server::new().limits(Limits::default().body(3));
    let server = server.post("/both", |request: &mut Request| -> io::Result<Status> {
        let mut body = request.respond(Response::ok())?;
        body.write_all(b"part")?;
        body.read_to_end(&mut Vec::new())?; // It is too large: 413, were there no answer.
        Ok(Status::OK)
    });
    let client = server.client();
    let answer = client.send(b"POST /both HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello");
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.ends_with("4\r\npart\r\n"), "{answer}");
}

#[test]
fn an_answer_that_is_over_leaves_the_connection_for_the_next_request() {
    let server = Server::new().post("/both", |request: &mut Request| -> io::Result<()> {
        let mut all = Vec::new();
        let (was_read, was_written) = both(
            request,
            |body| body.read_to_end(&mut all).map(drop),
            |to| to.write_all(b"answer"),
        );
        assert_eq!(all, b"hello");
        was_read.and(was_written)
    });
    let one =
        "POST /both HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\nhello";
    let all = server.client().send(one.repeat(2).as_bytes());
    let all = String::from_utf8(all).unwrap();
    assert_eq!(
        all.matches("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
            .count(),
        2,
        "{all}"
    );
    assert_eq!(all.matches("6\r\nanswer\r\n0\r\n\r\n").count(), 2, "{all}");
}
