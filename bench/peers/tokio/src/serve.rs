//! `serve`: an HTTP server with hyper, as in hyper's own guide: a task for each connection.

use anyhow::{Context, Result, bail};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use peer_protocol::{Params, Workload, listening, until_end_of_input};
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::sleep;

const BACKLOG: u32 = 4096;

/// What is answered: the status and the text.
pub type Answer = (StatusCode, Bytes);

pub fn serve(runtime: Runtime, params: &Params) -> Result<Workload> {
    let delay = Duration::from_millis(params.get("delay_ms")?);
    serve_until_end_of_input(&runtime, move || async move {
        if !delay.is_zero() {
            sleep(delay).await;
        }
        (StatusCode::OK, Bytes::from_static(b"Hello, World!"))
    })
}

/// Listens on a free port of the loopback interface.
pub fn listen() -> Result<TcpListener> {
    let socket = TcpSocket::new_v4().context("cannot make a socket")?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    socket.listen(BACKLOG).context("cannot listen")
}

/// Answers `GET /` with what the closure makes.
pub fn serve_until_end_of_input<F>(
    runtime: &Runtime,
    answer: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Result<Workload>
where
    F: Future<Output = Answer> + Send + 'static,
{
    let listener = runtime.block_on(async { listen() })?;
    let port = listener.local_addr()?.port();
    runtime.spawn(accept(listener, answer));
    listening(port);
    until_end_of_input();
    Ok(Box::new(|_| bail!("a server has no rounds")))
}

async fn accept<F>(listener: TcpListener, answer: impl Fn() -> F + Clone + Send + Sync + 'static)
where
    F: Future<Output = Answer> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve_connection(stream, answer.clone()));
            }
            Err(error) => {
                eprintln!("cannot accept: {error}");
                // There may be too many open files. Some time for others to close theirs.
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_connection<F>(stream: TcpStream, answer: impl Fn() -> F)
where
    F: Future<Output = Answer>,
{
    if let Err(error) = stream.set_nodelay(true) {
        eprintln!("cannot set TCP_NODELAY: {error}");
    }
    let service = service_fn(|request| respond(request, &answer));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        eprintln!("connection failed: {error}");
    }
}

async fn respond<F>(
    request: Request<Incoming>,
    answer: &impl Fn() -> F,
) -> Result<Response<Full<Bytes>>, Infallible>
where
    F: Future<Output = Answer>,
{
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => answer().await,
        _ => (StatusCode::NOT_FOUND, Bytes::from_static(b"Not Found")),
    };
    let response = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "text/plain");
    let response = response.body(Full::new(text));
    Ok(response.expect("status and header are valid"))
}
