//! Each answer is its request's, whole, and in order, whatever the network and the clients do.

use crate::client::{Answer, Client, below, nap};
use pirn_http::{Handler, Request, Response, Server, Status};
use pirn_sim::net::{self, Node, node};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How often each request's handler has begun.
type Begun = Arc<Mutex<BTreeMap<u64, u64>>>;

fn id_of(request: &Request) -> u64 {
    request
        .header("x-id")
        .and_then(|id| id.parse().ok())
        .unwrap()
}

/// Notes which request it is, and says it in the answer.
fn numbered(begun: &Begun) -> impl Fn(&mut Request, &Handler) -> Response + Send + Sync + use<> {
    let begun = Arc::clone(begun);
    move |request, inner| {
        let id = id_of(request);
        *begun.lock().unwrap().entry(id).or_default() += 1;
        request.before_response(move |response| {
            let id = id.to_string().parse().unwrap();
            response.headers.insert("x-id", id);
        });
        inner(request)
    }
}

fn text_of(id: u64) -> String {
    format!("{id} ").repeat(1 + (id % 700) as usize)
}

fn serve(begun: &Begun) {
    let server = Server::new()
        .get("/text", |request: &mut Request| {
            nap(3);
            text_of(id_of(request))
        })
        .get("/stream", |request: &mut Request| -> io::Result<()> {
            let id = id_of(request);
            let mut body = request.respond(Response::ok())?;
            for part in text_of(id).as_bytes().chunks(300) {
                body.write_all(part)?;
                if below(3) == 0 {
                    body.flush()?;
                    nap(3);
                }
            }
            Ok(())
        })
        .get("/none", || Status::NO_CONTENT)
        .post("/echo", |request: &mut Request| request.bytes())
        .post("/ignore", || "ignored")
        .post("/part", |request: &mut Request| -> io::Result<String> {
            let mut part = [0; 10];
            let count = io::Read::read(request, &mut part)?;
            Ok(format!("{}", count > 0))
        })
        .get("/panic", || -> Response {
            std::panic::resume_unwind(Box::new("a bug"))
        })
        .with(numbered(begun));
    server.bind("0.0.0.0:80").unwrap().serve().unwrap();
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Text,
    Head,
    Stream,
    None,
    Echo,
    EchoChunked,
    Ignore,
    Part,
    Panic,
    Missing,
}

const KINDS: [Kind; 10] = [
    Kind::Text,
    Kind::Head,
    Kind::Stream,
    Kind::None,
    Kind::Echo,
    Kind::EchoChunked,
    Kind::Ignore,
    Kind::Part,
    Kind::Panic,
    Kind::Missing,
];

impl Kind {
    fn bytes(self, id: u64) -> Vec<u8> {
        let line = match self {
            Kind::Text => "GET /text",
            Kind::Head => "HEAD /text",
            Kind::Stream => "GET /stream",
            Kind::None => "GET /none",
            Kind::Echo | Kind::EchoChunked => "POST /echo",
            Kind::Ignore => "POST /ignore",
            Kind::Part => "POST /part",
            Kind::Panic => "GET /panic",
            Kind::Missing => "GET /missing",
        };
        let mut bytes = format!("{line} HTTP/1.1\r\nhost: a\r\nx-id: {id}\r\n").into_bytes();
        let body = text_of(id);
        match self {
            Kind::Echo | Kind::Ignore | Kind::Part => {
                let length = body.len();
                write!(bytes, "content-length: {length}\r\n\r\n{body}").unwrap();
            }
            Kind::EchoChunked => {
                write!(bytes, "transfer-encoding: chunked\r\n\r\n").unwrap();
                for part in body.as_bytes().chunks(200) {
                    write!(bytes, "{:x}\r\n", part.len()).unwrap();
                    bytes.extend_from_slice(part);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
            _ => bytes.extend_from_slice(b"\r\n"),
        }
        bytes
    }

    fn check(self, id: u64, answer: &Answer) {
        let body = match self {
            Kind::Text | Kind::Stream | Kind::Echo | Kind::EchoChunked => text_of(id),
            Kind::Head | Kind::None => String::new(),
            Kind::Ignore => "ignored".into(),
            Kind::Part => "true".into(),
            Kind::Panic | Kind::Missing => String::from_utf8_lossy(&answer.body).into_owned(),
        };
        let status = match self {
            Kind::None => 204,
            Kind::Panic => 500,
            Kind::Missing => 404,
            _ => 200,
        };
        assert_eq!(answer.status, status, "{self:?} {id}: {answer:?}");
        assert_eq!(answer.body, body.as_bytes(), "{self:?} {id}");
        assert!(answer.id == Some(id) || self == Kind::Panic && answer.id.is_none());
    }
}

/// Sends requests at once, and reads the answers. Returns whether the connection is to be used on.
fn pipeline(client: &mut Client, ids: &AtomicU64) -> io::Result<bool> {
    let requests: Vec<_> = (0..1 + below(3))
        .map(|_| {
            let kind = KINDS[below(KINDS.len() as u64) as usize];
            (kind, ids.fetch_add(1, SeqCst))
        })
        .collect();
    let all: Vec<u8> = requests.iter().flat_map(|it| it.0.bytes(it.1)).collect();
    // The server closes a connection whose client does not read: 408, or a reset.
    client.send(&all)?;
    for (kind, id) in requests {
        let answer = client.answer(kind == Kind::Head)?;
        kind.check(id, &answer);
        if answer.closes {
            assert!(client.is_over(), "more than it said");
            return Ok(false);
        }
    }
    Ok(true)
}

fn begin() -> (Begun, Arc<AtomicU64>, Node) {
    let begun = Begun::default();
    let of_server = Arc::clone(&begun);
    let server = node("server", move || serve(&of_server));
    (begun, Arc::default(), server)
}

fn each_once(begun: &Begun, ids: &AtomicU64) {
    let begun = begun.lock().unwrap();
    assert!(begun.values().all(|&times| times == 1), "{begun:?}");
    assert!(begun.keys().all(|id| *id < ids.load(SeqCst)));
}

/// Clients that pipeline, on links that are slow and lose messages: all get their answers.
#[pirn_sim::test(seeds(0..20))]
fn each_answer_is_its_requests() {
    net::latency(Duration::from_millis(1)..Duration::from_millis(1 + below(80)));
    net::loss(below(10) as f64 / 50.0);
    let (begun, ids, _server) = begin();
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let ids = Arc::clone(&ids);
            thread::spawn(move || {
                let mut client = Client::connect();
                for _ in 0..3 {
                    if !pipeline(&mut client, &ids).unwrap() {
                        client = Client::connect();
                    }
                    nap(20);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|it| it.join().unwrap());
    let all = ids.load(SeqCst) as usize;
    each_once(&begun, &ids);
    assert!(begun.lock().unwrap().len() <= all);
}

/// Threads pause, clients go away in the middle, nodes crash, links are cut: an answer that comes
/// is the right one, and no request is handled twice.
fn faults() {
    net::latency(Duration::from_millis(1)..Duration::from_millis(1 + below(40)));
    net::loss(below(5) as f64 / 50.0);
    let (begun, ids, server) = begin();
    let of_client = Arc::clone(&ids);
    let clients: Vec<_> = (0..3)
        .map(|n| {
            let ids = Arc::clone(&of_client);
            node(&format!("client-{n}"), move || {
                for _ in 0..4 {
                    let mut client = Client::connect();
                    let limit = Some(Duration::from_secs(2));
                    client.stream().set_read_timeout(limit).unwrap();
                    client.stream().set_write_timeout(limit).unwrap();
                    for _ in 0..3 {
                        if below(8) == 0 {
                            let kind = KINDS[below(KINDS.len() as u64) as usize];
                            let bytes = kind.bytes(ids.fetch_add(1, SeqCst));
                            let _ = client.send(&bytes[..below(bytes.len() as u64) as usize]);
                            break; // Goes away in the middle.
                        }
                        match pipeline(&mut client, &ids) {
                            Ok(true) => nap(20),
                            Ok(false) => break,
                            Err(error) => {
                                const GONE: [ErrorKind; 5] = [
                                    ErrorKind::UnexpectedEof,
                                    ErrorKind::ConnectionReset,
                                    ErrorKind::BrokenPipe,
                                    ErrorKind::WouldBlock, // Too late.
                                    ErrorKind::TimedOut,
                                ];
                                assert!(GONE.contains(&error.kind()), "{error:?}");
                                break;
                            }
                        }
                    }
                }
            })
        })
        .collect();
    for _ in 0..3 {
        nap(500);
        let client = &clients[below(3) as usize];
        match below(4) {
            0 => {
                server.crash();
                nap(100);
                server.restart();
            }
            1 => {
                client.crash();
                client.restart();
            }
            2 => {
                net::partition(client, &server);
                nap(5000);
                net::heal(client, &server);
            }
            _ => {
                net::cut(client, &server);
                nap(5000);
                net::heal(client, &server);
            }
        }
    }
    thread::sleep(Duration::from_secs(20));
    each_once(&begun, &ids);
    // It serves still.
    let mut client = Client::connect();
    while !pipeline(&mut client, &ids).unwrap() {
        client = Client::connect();
    }
}

#[pirn_sim::test(seeds(0..5))]
fn an_answer_is_its_requests_in_spite_of_faults() {
    faults();
}

#[pirn_sim::test(seeds(0..5), pauses(1000, Duration::from_secs(5)))]
fn an_answer_is_its_requests_in_spite_of_faults_and_pauses() {
    faults();
}
