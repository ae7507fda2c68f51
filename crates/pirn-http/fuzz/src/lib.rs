//! What servers make of the same bytes.

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use pirn_http::{Client, Handler, IntoResponse, Limits, Method, Request, Response, Server, Status};
use std::cell::RefCell;
use std::convert::Infallible;
use std::io::Read;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A request that a server has seen, up to the end of its body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub body: Vec<u8>,
}

/// The maximum size of a head. The least that hyper allows.
const HEAD: usize = 8192;

/// pirn-http, and what it has seen.
pub struct Ours {
    client: Client,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Ours {
    /// Returns a server that notes all requests.
    pub fn new() -> Ours {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let server = Server::new()
            .limits(Limits::default().head(HEAD))
            .with(move |request: &mut Request, _: &Handler| note(request, &log))
            .http2(false);
        Ours {
            client: server.client(),
            seen,
        }
    }

    /// Sends bytes on a connection, and returns the requests that were in them.
    ///
    /// # Panics
    /// If what comes back is not one answer after the other.
    pub fn requests(&self, bytes: &[u8]) -> Vec<Seen> {
        let all = self.client.send(bytes);
        assert!(
            all.is_empty() || all.starts_with(b"HTTP/1.1 "),
            "not an answer: {:?}",
            String::from_utf8_lossy(&all)
        );
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Default for Ours {
    fn default() -> Ours {
        Ours::new()
    }
}

fn note(request: &mut Request, log: &Mutex<Vec<Seen>>) -> Response {
    let mut body = Vec::new();
    if let Err(error) = request.read_to_end(&mut body) {
        return error.into_response();
    }
    let target = request.uri.path_and_query().map(ToString::to_string);
    log.lock().unwrap().push(Seen {
        method: request.method.to_string(),
        target: target.unwrap_or_default(),
        body,
    });
    // What follows a CONNECT that is granted is no HTTP.
    match request.method == Method::CONNECT {
        true => Response::new(Status::FORBIDDEN),
        false => Response::ok(),
    }
}

/// Returns the requests that hyper sees in these bytes.
///
/// # Panics
/// If it cannot be started.
pub fn hyper_requests(bytes: &[u8]) -> Vec<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().expect("a runtime of one thread");
    let seen = Rc::new(RefCell::new(Vec::new()));
    runtime.block_on(async {
        let (client, server) = tokio::io::duplex(1 << 20);
        let log = Rc::clone(&seen);
        let service =
            hyper::service::service_fn(move |request| note_hyper(request, Rc::clone(&log)));
        let connection = hyper::server::conn::http1::Builder::new()
            .half_close(true)
            .max_buf_size(HEAD)
            .serve_connection(hyper_util::rt::TokioIo::new(server), service);
        let (mut reader, mut writer) = tokio::io::split(client);
        let send = async {
            let _ = writer.write_all(bytes).await;
            let _ = writer.shutdown().await;
        };
        let receive = async {
            let mut all = Vec::new();
            let _ = reader.read_to_end(&mut all).await;
        };
        let _ = tokio::join!(connection, send, receive);
    });
    seen.take()
}

async fn note_hyper(
    request: hyper::Request<Incoming>,
    log: Rc<RefCell<Vec<Seen>>>,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let mut response = hyper::Response::new(Full::default());
    let Ok(body) = body.collect().await else {
        *response.status_mut() = hyper::StatusCode::BAD_REQUEST;
        return Ok(response);
    };
    let target = head.uri.path_and_query().map(ToString::to_string);
    log.borrow_mut().push(Seen {
        method: head.method.to_string(),
        target: target.unwrap_or_default(),
        body: body.to_bytes().to_vec(),
    });
    if head.method == Method::CONNECT {
        *response.status_mut() = hyper::StatusCode::FORBIDDEN;
    }
    Ok(response)
}
