//! A router of axum, without tokio.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Query};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{get, post};
use http_body::{Body as _, Frame};
use pirn_http::{Handler, Limits, Method, Request, Response, Server};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

/// A body whose frames come from another thread.
struct Numbers(u32);

impl http_body::Body for Numbers {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0 += 1;
        match self.0 {
            5 => Poll::Ready(None),
            number if number % 2 == 1 => {
                let waker = context.waker().clone();
                pirn::thread::spawn(move || waker.wake());
                Poll::Pending
            }
            number => Poll::Ready(Some(Ok(Frame::data(number.to_string().into())))),
        }
    }
}

/// Ends with an error.
struct Broken(bool);

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(Some(match std::mem::replace(&mut self.0, true) {
            false => Ok(Frame::data("half".into())),
            true => Err(std::io::Error::other("on purpose")),
        }))
    }
}

/// A body whose end comes when the test wakes it.
struct Slow(Option<mpsc::Sender<Waker>>, bool);

impl http_body::Body for Slow {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if !std::mem::replace(&mut self.1, true) {
            return Poll::Ready(Some(Ok(Frame::data("first".into()))));
        }
        match self.0.take() {
            Some(wakers) => {
                wakers.send(context.waker().clone()).unwrap();
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }
}

fn server() -> Server {
    let router = Router::new()
        .route(
            "/api/users/{id}",
            get(|Path(id): Path<u32>| async move { format!("user {id}") }),
        )
        .route(
            "/api/query",
            get(
                |Query(all): Query<HashMap<String, String>>, headers: HeaderMap| async move {
                    format!("{} {:?}", all["a"], headers["x-b"])
                },
            ),
        )
        .route("/api/uri", get(|uri: Uri| async move { uri.to_string() }))
        .route(
            "/api/length",
            post(|body: Bytes| async move { body.len().to_string() }),
        )
        .route("/api/echo", post(|body: Body| async move { body }))
        .route("/api/ignore", post(|| async { StatusCode::ACCEPTED }))
        .route(
            "/api/hint",
            post(|body: Body| async move { format!("{:?}", body.size_hint().exact()) }),
        )
        .route("/api/numbers", get(|| async { Body::new(Numbers(0)) }))
        .route("/api/broken", get(|| async { Body::new(Broken(false)) }))
        .layer(DefaultBodyLimit::disable());
    Server::new().get("/own", || "own").service("/api", router)
}

#[test]
fn a_router_serves_beside_the_servers_own_routes() {
    let client = server().client();
    assert_eq!(client.get("/own").text(), "own");
    assert_eq!(client.get("/api/users/7").text(), "user 7");
    assert_eq!(client.get("/api/users/x").status, StatusCode::BAD_REQUEST);
    assert_eq!(client.get("/api/missing").status, StatusCode::NOT_FOUND);
    assert_eq!(client.get("/api").status, StatusCode::NOT_FOUND);
    assert_eq!(
        client.post("/api/users/7", "x").status,
        StatusCode::METHOD_NOT_ALLOWED
    );
    assert_eq!(client.get("/api/uri?x=%20").text(), "/api/uri?x=%20");
    let answer = client.request(Method::GET, "/api/query?a=1", &[("x-b", "2")], b"");
    assert_eq!(answer.text(), "1 \"2\"");
    assert_eq!(answer.headers["content-length"], "5");
    let head = client.request(Method::HEAD, "/api/users/7", &[], b"");
    assert_eq!(head.headers["content-length"], "6");
    assert_eq!(head.body, b"");
    let head = client.request(Method::HEAD, "/api/numbers", &[], b"");
    assert_eq!(head.headers["transfer-encoding"], "chunked");
    assert_eq!(head.body, b"");
}

#[test]
fn bodies_are_streams_in_both_directions() {
    let client = server().client();
    assert_eq!(client.get("/api/numbers").text(), "24");
    let large = "0123456789".repeat(20_000);
    assert_eq!(client.post("/api/length", &large).text(), "200000");
    assert!(client.post("/api/echo", &large).text() == large);
    assert_eq!(
        client.post("/api/ignore", &large).status,
        StatusCode::ACCEPTED
    );
    assert_eq!(client.post("/api/hint", "hello").text(), "Some(5)");
    assert_eq!(client.post("/api/echo", "").text(), "");
    let chunked = b"POST /api/echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\
                    connection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let all = String::from_utf8(client.send(chunked)).unwrap();
    assert!(
        all.contains("abc") && all.contains("de") && all.ends_with("0\r\n\r\n"),
        "{all}"
    );
}

#[test]
fn what_is_sent_comes_back_before_more_is_sent() {
    let running = server().bind("127.0.0.1:0").unwrap().start().unwrap();
    let mut stream = TcpStream::connect(running.local_addr().unwrap()).unwrap();
    // What gets stuck fails the test, in place of hanging it.
    let patience = Some(pirn_testing::patient(std::time::Duration::from_secs(30)));
    stream.set_read_timeout(patience).unwrap();
    let head = b"POST /api/echo HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n";
    stream.write_all(head).unwrap();
    let mut byte = [0];
    let mut answer = Vec::new();
    for piece in ["hello", "world"] {
        stream.write_all(piece.as_bytes()).unwrap();
        while !answer.ends_with(piece.as_bytes()) {
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
    }
    drop(stream);
    running.shutdown();
}

#[test]
fn what_a_service_has_sent_does_not_wait_for_what_follows() {
    let (send, wakers) = mpsc::channel();
    let slow = move || async move { Body::new(Slow(Some(send), false)) };
    let server = Server::new().service("/", Router::new().route("/", get(slow)));
    let running = server.bind("127.0.0.1:0").unwrap().start().unwrap();
    let mut stream = TcpStream::connect(running.local_addr().unwrap()).unwrap();
    let patience = Some(pirn_testing::patient(std::time::Duration::from_secs(30)));
    stream.set_read_timeout(patience).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut all = Vec::new();
    let mut byte = [0];
    while !all.ends_with(b"first") {
        stream.read_exact(&mut byte).unwrap();
        all.push(byte[0]);
    }
    wakers.recv().unwrap().wake();
    assert_eq!(stream.read_to_end(&mut all).unwrap(), 0);
    running.shutdown();
}

#[test]
fn a_body_that_fails_has_no_end() {
    let all = server()
        .client()
        .send(b"GET /api/broken HTTP/1.1\r\nhost: a\r\n\r\n");
    let text = String::from_utf8(all).unwrap();
    assert!(
        text.starts_with("HTTP/1.1 200") && text.contains("half"),
        "{text}"
    );
    assert!(!text.ends_with("0\r\n\r\n"), "{text}");
}

#[test]
fn a_body_beyond_the_limit_is_an_error_of_the_service() {
    let client = server().limits(Limits::default().body(10)).client();
    let status = client.post("/api/length", "0123456789a").status;
    assert!(status.is_client_error(), "{status}");
    assert_eq!(client.post("/api/length", "0123456789").text(), "10");
}

#[test]
fn a_body_that_outlives_its_request_ends_with_an_error() {
    let (send, bodies) = mpsc::channel();
    let keep = move |body: Body| async move {
        send.send(body).unwrap();
    };
    let client = Server::new()
        .service("/", Router::new().route("/", post(keep)))
        .client();
    assert_eq!(client.post("/", "hello").status, StatusCode::OK);
    let mut body = bodies.recv().unwrap();
    // The request is over before its answer has been sent: nothing has to be waited for.
    let polled = Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Some(Err(_)))), "{polled:?}");
}

#[test]
fn middleware_of_the_server_is_around_the_service() {
    let client = server()
        .with(|request: &mut Request, inner: &Handler| {
            request.before_response(|response: &mut Response| {
                response.headers.insert("x-seen", "yes".parse().unwrap());
            });
            inner(request)
        })
        .client();
    assert_eq!(client.get("/api/users/1").headers["x-seen"], "yes");
}
