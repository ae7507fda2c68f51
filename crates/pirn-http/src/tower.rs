//! Serving by services of `tower`, such as routers of axum.

use crate::poison::locked;
use crate::request::Request;
use crate::response::{Body, IntoResponse, Response};
use bytes::{Buf, Bytes};
use http::Method;
use http::header::CONTENT_LENGTH;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io::{self, Read};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tower_service::Service;

/// How many bytes of a request's body are read at once.
const PIECE: usize = 16 * 1024;

type AnyError = Box<dyn Error + Send + Sync>;

/// Returns a handler that has a service serve: see [`Server::service`](crate::Server::service).
pub(crate) fn handler<S, B>(
    service: S,
) -> impl Fn(&mut Request) -> io::Result<Response> + Send + Sync + 'static
where
    S: Service<http::Request<RequestBody>, Response = http::Response<B>>,
    S: Clone + Send + Sync + 'static,
    S::Error: Into<AnyError>,
    B: HttpBody,
    B::Error: Into<AnyError>,
{
    move |request: &mut Request| serve(service.clone(), request)
}

/// Has a service serve a request, and sends what it returns.
fn serve<S, B>(mut service: S, request: &mut Request) -> io::Result<Response>
where
    S: Service<http::Request<RequestBody>, Response = http::Response<B>>,
    S::Error: Into<AnyError>,
    B: HttpBody,
    B::Error: Into<AnyError>,
{
    let way = Way(Arc::default());
    let asked = {
        let body = RequestBody {
            shared: Arc::clone(&way.0),
            left: request.body_left(),
        };
        http::Request::from_parts(request.to_parts(), body)
    };
    let answer = {
        let mut answering = pin!(async move {
            poll_fn(|context| service.poll_ready(context)).await?;
            service.call(asked).await
        });
        block_on(poll_fn(|context| {
            loop {
                match answering.as_mut().poll(context) {
                    Poll::Pending if way.feed(request, context) => {}
                    result => return result,
                }
            }
        }))?
    };
    let answer = answer.map_err(|error| io::Error::other(error.into()))?;
    send(answer, request, &way)
}

/// Sends a response; returns it if it has no body.
fn send<B>(answer: http::Response<B>, request: &mut Request, way: &Way) -> io::Result<Response>
where
    B: HttpBody,
    B::Error: Into<AnyError>,
{
    let (parts, body) = answer.into_parts();
    let announced = parts.headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let length = match body.size_hint().exact() {
        // The length that `GET` would have, though there is no body.
        Some(0) if request.method == Method::HEAD => announced,
        length => length,
    };
    let mut response = Response::new(parts.status);
    response.headers = parts.headers;
    if let Some(length @ 1..) = length {
        response.body = Body::from_sized_reader(io::empty(), length);
    }
    if request.method == Method::HEAD {
        if length.is_none() {
            response.body = Body::from_reader(io::empty());
        }
        return Ok(response); // The client gets no body, which might never end.
    }
    if body.is_end_stream() {
        return Ok(response);
    }
    request.respond(response)?;
    let mut body = pin!(body);
    block_on(poll_fn(|context| {
        loop {
            match body.as_mut().poll_frame(context) {
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Ok(frame))) => write(request, frame)?,
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Err(io::Error::other(error.into())));
                }
                Poll::Pending => {
                    request.flush_body()?; // What there is should not wait for what follows.
                    if !way.feed(request, context) {
                        return Poll::Pending;
                    }
                }
            }
        }
    }))??;
    Ok(().into_response())
}

fn write(request: &mut Request, frame: Frame<impl Buf>) -> io::Result<()> {
    let Ok(mut data) = frame.into_data() else {
        return Ok(()); // Trailers.
    };
    while data.has_remaining() {
        let piece = data.chunk();
        request.write_body(piece)?;
        let count = piece.len();
        data.advance(count);
    }
    Ok(())
}

/// Runs a future, until the thread is interrupted.
fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    pirn::block_on_interruptible(future).map_err(|_| {
        let why = "the thread has been interrupted, and the service's future dropped";
        io::Error::new(io::ErrorKind::Interrupted, why)
    })
}

/// The body of a request to a [service](crate::Server::service).
#[derive(Debug)]
pub struct RequestBody {
    shared: Arc<Mutex<Shared>>,
    /// How many bytes are to come, if that is known.
    left: Option<u64>,
}

/// What a body and the request's thread tell each other. The body may be polled anywhere; only the
/// request's thread can read from the connection.
#[derive(Debug, Default)]
struct Shared {
    /// The body waits for a piece.
    is_wanted: bool,
    /// What has been read and not been taken yet.
    piece: Option<io::Result<Bytes>>,
    /// The request is over.
    is_over: bool,
    body: Option<Waker>,
    request: Option<Waker>,
}

/// The request's end. When that is gone, the body has an error.
struct Way(Arc<Mutex<Shared>>);

impl Way {
    /// Reads a piece if the body waits for it. Returns whether it did; otherwise the waker is
    /// called when it does.
    fn feed(&self, request: &mut Request, context: &Context<'_>) -> bool {
        let mut shared = locked(&self.0);
        if !shared.is_wanted {
            shared.request = Some(context.waker().clone());
            return false;
        }
        drop(shared);
        let mut piece = vec![0; PIECE];
        let piece = request.read(&mut piece).map(|count| {
            piece.truncate(count);
            Bytes::from(piece)
        });
        let mut shared = locked(&self.0);
        shared.is_wanted = false;
        shared.piece = Some(piece);
        let waker = shared.body.take();
        drop(shared);
        waker.into_iter().for_each(Waker::wake);
        true
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        let mut shared = locked(&self.0);
        shared.is_over = true;
        let waker = shared.body.take();
        drop(shared);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == Some(0) {
            return Poll::Ready(None);
        }
        let mut shared = locked(&self.shared);
        let piece = shared.piece.take();
        if piece.is_none() && shared.is_over {
            let why = "the request is over, and its body has not been read to the end";
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::BrokenPipe, why))));
        }
        let Some(piece) = piece else {
            shared.is_wanted = true;
            shared.body = Some(context.waker().clone());
            let waker = shared.request.take();
            drop(shared);
            waker.into_iter().for_each(Waker::wake);
            return Poll::Pending;
        };
        drop(shared);
        let count = piece.as_ref().map_or(0, Bytes::len) as u64;
        // After an error, or the end, there is nothing more.
        self.left = match count {
            0 => Some(0),
            count => self.left.map(|left| left.saturating_sub(count)),
        };
        Poll::Ready(match piece {
            Ok(bytes) if bytes.is_empty() => None,
            piece => Some(piece.map(Frame::data)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map(SizeHint::with_exact).unwrap_or_default()
    }
}
