//! Clients of HTTP/1.1 that are too slow, and handlers that go on all the same.

use pirn_http::{Request, Response, Running, Server, Timeouts};
use pirn_testing::patient;
use std::io::{self, BufWriter, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

fn echo() -> Server {
    Server::new().post("/echo", |request: &mut Request| request.bytes())
}

#[test]
fn slow_clients_are_told_and_cut_off() {
    let short = patient(Duration::from_millis(200));
    let timeouts = Timeouts::default()
        .head(short)
        .idle(short)
        .body(short, 1 << 20);
    let running = echo()
        .timeouts(timeouts)
        .bind("127.0.0.1:0")
        .unwrap()
        .start()
        .unwrap();
    let begin = |bytes: &str| {
        let mut stream = TcpStream::connect(running.local_addr().unwrap()).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        all
    };
    assert_eq!(begin(""), "");
    assert!(begin("GET / HT").starts_with("HTTP/1.1 408 "));
    let body = "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 20\r\n\r\nabc";
    assert!(begin(body).starts_with("HTTP/1.1 408 "));
    assert_eq!(running.shutdown(), 0);
}

#[test]
fn a_body_that_drips_for_ever_is_ended_with_the_name_of_the_setting() {
    // The handler has more time, and is not what is late.
    let timeouts = Timeouts::default()
        .upload(patient(Duration::from_millis(300)))
        .handler(Duration::from_secs(600));
    let server = echo().timeouts(timeouts).bind("127.0.0.1:0").unwrap();
    let running = server.start().unwrap();
    let head = "POST /echo HTTP/1.1\r\nhost: a\r\n";
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n");
    let announced = format!("{head}content-length: 2000000\r\n\r\n");
    let plain = "x".repeat(256);
    let chunk = format!("100\r\n{plain}\r\n");
    for (head, piece) in [(chunked, chunk), (announced, plain)] {
        let mut stream = TcpStream::connect(running.local_addr().unwrap()).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut sender = stream.try_clone().unwrap();
        // 500 times as fast as the 500 bytes per second of the default.
        let drips = thread::spawn(move || {
            while sender.write_all(piece.as_bytes()).is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
        });
        let mut answer = String::new();
        // It ends well, though more is on its way: a reset could take the answer with it.
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains("(Timeouts::upload)"), "{answer}");
        drips.join().unwrap();
    }
    assert_eq!(running.shutdown(), 0);
}

/// Serves with short limits: bodies begin within 200 ms, move by a byte per second, and never pause
/// for longer than `pause` milliseconds.
fn hurried(server: Server, pause: u64) -> (Running, TcpStream) {
    let timeouts = Timeouts::default()
        .body(patient(Duration::from_millis(200)), 1)
        .idle(patient(Duration::from_millis(pause)));
    let running = server.timeouts(timeouts).bind("127.0.0.1:0").unwrap();
    let running = running.start().unwrap();
    let mut client = TcpStream::connect(running.local_addr().unwrap()).unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        .unwrap();
    (running, client)
}

#[test]
fn a_large_body_in_memory_may_take_longer_than_its_first_bytes() {
    const LENGTH: usize = 40 << 20;
    let server = Server::new().get("/", || vec![0; LENGTH]);
    // Longer than this machine may forget about the client.
    let (_running, mut client) = hurried(server, 10_000);
    let (mut count, mut piece) = (0, vec![0; 128 << 10]);
    loop {
        match client.read(&mut piece).unwrap() {
            0 => break,
            more => count += more,
        }
        thread::sleep(Duration::from_millis(3));
    }
    assert!(count > LENGTH, "{count}");
}

#[test]
fn a_client_that_reads_nothing_more_is_cut_off() {
    let (ended, end) = std::sync::mpsc::channel();
    let server = Server::new().get("/", move |request: &mut Request| -> io::Result<()> {
        let mut body = request.respond(Response::ok())?;
        let result = io::copy(&mut io::repeat(0), &mut body);
        ended.send(result.is_err()).unwrap();
        Ok(())
    });
    let (_running, mut client) = hurried(server, 400);
    // What the kernel's buffers have taken would be enough for days.
    assert_eq!(end.recv_timeout(patient(Duration::from_secs(60))), Ok(true));
    // Nor does the kernel keep what the client may read some time.
    let rest = io::copy(&mut client, &mut io::sink());
    assert_eq!(rest.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

/// After the time is up each further piece fails at once, also what is written when the handler's
/// buffer is dropped, and the end of the connection does not wait for the client either.
#[test]
fn a_client_that_never_reads_holds_nothing_whatever_its_handler_does() {
    let (ended, end) = std::sync::mpsc::channel();
    let server = Server::new().get("/", move |request: &mut Request| -> io::Result<()> {
        let mut body = BufWriter::new(request.respond(Response::ok())?);
        let first = io::copy(&mut io::repeat(0), &mut body);
        let more = [0; 10].map(|_| body.write_all(&[0; 100_000]).is_err());
        drop(body);
        ended.send((first.is_err(), more)).unwrap();
        Ok(())
    });
    let (running, _client) = hurried(server, 400);
    let errors = (true, [true; 10]);
    assert_eq!(
        end.recv_timeout(patient(Duration::from_secs(60))),
        Ok(errors)
    );
    let begun = Instant::now();
    while running.connections() > 0 && begun.elapsed() < patient(Duration::from_secs(60)) {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(running.connections(), 0);
}

/// Reading again does not wait for ever, and the answer has its own time.
#[test]
fn a_handler_that_goes_on_after_a_slow_body_has_its_own_time() {
    let (ended, end) = std::sync::mpsc::channel();
    let server = Server::new().post("/", move |request: &mut Request| -> io::Result<()> {
        let reads = [0; 3].map(|_| request.read(&mut [0; 8]).map_err(|error| error.kind()));
        let mut body = request.respond(Response::ok())?;
        body.write_all(b"slow")?;
        body.flush()?;
        let written = io::copy(&mut io::repeat(0), &mut body);
        ended.send((reads, written.is_err())).unwrap();
        Ok(())
    });
    let (running, _other) = hurried(server, 400);
    let mut client = TcpStream::connect(running.local_addr().unwrap()).unwrap();
    client
        .write_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n")
        .unwrap();
    let mut head = [0; 15];
    client.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let late = Err(io::ErrorKind::TimedOut);
    let wanted = Ok(([late; 3], true));
    assert_eq!(end.recv_timeout(patient(Duration::from_secs(60))), wanted);
}
