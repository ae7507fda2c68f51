//! `ureq` against `tiny_http`. The clients and the request handlers run on virtual threads; the
//! threads that `tiny_http` starts itself, to accept and to parse, are platform threads.

use std::io::{self, ErrorKind, Read};
use std::iter::Enumerate;
use std::net::Ipv4Addr;
use std::slice;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use pirn::thread;
use pirn_compat::{self as common, Latch, NEVER, THREADS, on_threads, watched};
use tiny_http::{Method, Request, Response, Server};
use ureq::{Agent, Error};

fn serve() -> (Server, String) {
    let server = Server::http((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", server.server_addr());
    (server, url)
}

/// Runs `handler` for each of `requests` requests on a virtual thread of its own, and meanwhile
/// `client` on `THREADS` virtual threads.
fn converse(
    server: &Server,
    requests: usize,
    handler: impl Fn(Request) + Sync,
    client: impl Fn(usize) + Sync,
) {
    let handler = &handler;
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..requests {
                let request = server.recv().unwrap();
                scope.spawn(|| handler(request));
            }
        });
        on_threads(THREADS, client);
    });
}

/// Lets the clients in one after the other. `tiny_http` queues a new connection behind its idle
/// threads: of connections that arrive together, some may wait until others are closed, which
/// in a test where all requests are in progress at once is never.
#[derive(Default)]
struct Turnstile {
    passed: Mutex<usize>,
    turned: Condvar,
}

impl Turnstile {
    /// Waits until `index` clients have been let through.
    fn wait_for(&self, index: usize) {
        let passed = self.passed.lock().unwrap();
        drop(self.turned.wait_while(passed, |passed| *passed < index));
    }

    fn pass(&self) {
        *self.passed.lock().unwrap() += 1;
        self.turned.notify_all();
    }
}

/// All requests are in progress before the first is answered.
#[watched]
fn all_requests_wait_in_their_handlers() {
    let (server, url) = serve();
    let agent = Agent::new_with_defaults();
    let turnstile = Turnstile::default();
    let handling = Latch::new(THREADS);
    let handler = |request: Request| {
        turnstile.pass();
        handling.arrive_and_wait();
        let answer = format!("you asked for {}", request.url());
        request.respond(Response::from_string(answer)).unwrap();
    };
    let client = |index: usize| {
        turnstile.wait_for(index);
        let mut response = agent.get(format!("{url}/{index}")).call().unwrap();
        let body = response.body_mut().read_to_string().unwrap();
        assert_eq!(body, format!("you asked for /{index}"));
    };
    converse(&server, THREADS, handler, client);
}

/// Several requests of each client over the connections that the shared agent keeps.
#[watched]
fn bodies_are_echoed() {
    const ROUNDS: usize = 5;
    let (server, url) = serve();
    let agent = Agent::new_with_defaults();
    let handler = |mut request: Request| {
        assert_eq!(*request.method(), Method::Post);
        let mut body = Vec::new();
        request.as_reader().read_to_end(&mut body).unwrap();
        request.respond(Response::from_data(body)).unwrap();
    };
    let client = |index: usize| {
        for round in 0..ROUNDS {
            let sent = vec![(index + round) as u8; 1000 * round];
            let mut response = agent.post(&url).send(&sent).unwrap();
            let received = response.body_mut().read_to_vec().unwrap();
            assert!(received == sent, "client {index}, round {round}");
        }
    };
    converse(&server, THREADS * ROUNDS, handler, client);
}

/// Response bodies come in pieces, each held back until every client has read the one before.
#[watched]
fn all_clients_block_inside_the_response_body() {
    let (server, url) = serve();
    let agent = Agent::new_with_defaults();
    let turnstile = Turnstile::default();
    let wanted = [(); Pieces::COUNT].map(|()| Latch::new(THREADS));
    let handler = |request: Request| {
        turnstile.pass();
        let length = Pieces::COUNT * Pieces::LENGTH;
        let body = Pieces {
            wanted: wanted.iter().enumerate(),
        };
        let response = Response::new(200.into(), Vec::new(), body, Some(length), None)
            .with_chunked_threshold(usize::MAX);
        request.respond(response).unwrap();
    };
    let client = |index: usize| {
        turnstile.wait_for(index);
        let (first, later) = wanted.split_first().unwrap();
        first.arrive(); // the response's head comes with the first piece
        let response = agent.get(&url).call().unwrap();
        let mut body = response.into_body().into_reader();
        let mut read_piece = |number: usize| {
            let mut piece = [0; Pieces::LENGTH];
            body.read_exact(&mut piece).unwrap();
            assert_eq!(piece, [number as u8; Pieces::LENGTH]);
        };
        read_piece(0);
        for (number, wanted) in (1..).zip(later) {
            wanted.arrive();
            read_piece(number);
        }
        assert_eq!(body.read(&mut [0]).unwrap(), 0);
    };
    converse(&server, THREADS, handler, client);
}

/// A body whose pieces are each sent only when all clients want it.
struct Pieces<'a> {
    wanted: Enumerate<slice::Iter<'a, Latch>>,
}

impl Pieces<'_> {
    const COUNT: usize = 5;
    /// More than `tiny_http` would hold back to send with the next one.
    const LENGTH: usize = 4096;
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some((number, wanted)) = self.wanted.next() else {
            return Ok(0);
        };
        wanted.wait();
        buffer[..Self::LENGTH].fill(number as u8);
        Ok(Self::LENGTH)
    }
}

/// The server never answers; every client gives up. With a host name, `ureq` looks it up on a
/// platform thread of its own and waits for that with a timeout as well.
#[watched]
fn timeouts_fire_for_all_clients() {
    let (server, _) = serve();
    let port = server.server_addr().to_ip().unwrap().port();
    let agent: Agent = Agent::config_builder()
        .timeout_recv_response(Some(Duration::from_millis(100)))
        .timeout_resolve(Some(NEVER))
        .build()
        .into();
    on_threads(THREADS, |index| {
        let host = ["127.0.0.1", "localhost"][index % 2];
        let error = agent.get(format!("http://{host}:{port}")).call();
        assert!(matches!(error, Err(Error::Timeout(_))), "{error:?}");
    });
}

/// `Agent::shutdown` wakes all threads that wait for the server's answer.
#[watched]
fn shutdown_interrupts_all_clients() {
    let (server, url) = serve();
    let agent = Agent::new_with_defaults();
    let turnstile = Turnstile::default();
    let interrupted = Latch::new(THREADS);
    let handler = |request: Request| {
        turnstile.pass();
        interrupted.wait();
        drop(request); // answers 500; the client has gone
    };
    let client = |index: usize| {
        turnstile.wait_for(index);
        let error = agent.get(&url).call().unwrap_err();
        assert!(
            matches!(&error, Error::Io(e) if e.kind() != ErrorKind::TimedOut),
            "{error:?}"
        );
        interrupted.arrive();
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            turnstile.wait_for(THREADS);
            agent.clone().shutdown();
        });
        converse(&server, THREADS, handler, client);
    });
}
