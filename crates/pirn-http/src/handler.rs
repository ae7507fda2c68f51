//! What serves requests: handlers, and the middleware around them.

use crate::refusal::Refused;
use crate::request::Request;
use crate::response::{IntoResponse, Response};
use std::sync::Arc;

/// What a [middleware](Middleware) is around: a handler, and the middleware inside.
///
/// # Examples
/// ```
/// use pirn_http::{Handler, Request, Response, Server};
/// fn as_is(request: &mut Request, inner: &Handler) -> Response {
///     inner(request)
/// }
/// let server = Server::new().get("/", || "in").with(as_is);
/// assert_eq!(server.client().get("/").text(), "in");
/// ```
pub type Handler = dyn Fn(&mut Request) -> Response + Send + Sync;

/// A function that handles requests: of nothing, of the request, of the server's
/// [state](crate::Server::with_state) `S`, or of both. It returns what is [`IntoResponse`].
///
/// | `Arguments` | the function |
/// |---|---|
/// | `fn()` | `Fn() -> R` |
/// | `fn(&mut Request)` | `Fn(&mut Request) -> R` |
/// | `fn(&S)` | `Fn(&S) -> R` |
/// | `fn(&S, &mut Request)` | `Fn(&S, &mut Request) -> R` |
///
/// Closures say the types of their parameters, by which the compiler tells these apart.
///
/// # Examples
/// ```
/// use pirn_http::{Request, Server};
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// fn count(visits: &AtomicU32) -> String {
///     format!("visit {}", visits.fetch_add(1, Relaxed) + 1)
/// }
/// let server = Server::with_state(AtomicU32::new(0))
///     .get("/", count)
///     .get("/name", |request: &mut Request| request.query_value("name"));
/// let client = server.client();
/// assert_eq!(client.get("/").text(), "visit 1");
/// assert_eq!(client.get("/name?name=Ada").text(), "Ada");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of a server whose state is `{S}`",
    note = "a handler is a function of (), (&mut Request), (&{S}) or (&{S}, &mut Request) that is \
            Send, Sync and 'static, and returns what is IntoResponse; a closure says the types of \
            its parameters: |request: &mut Request| ..."
)]
pub trait IntoHandler<S, Arguments>: Send + Sync + 'static {
    /// Handles a request.
    fn call(&self, state: &S, request: &mut Request) -> Response;
}

impl<S, F, R> IntoHandler<S, fn()> for F
where
    F: Fn() -> R + Send + Sync + 'static,
    R: IntoResponse,
{
    fn call(&self, _: &S, _: &mut Request) -> Response {
        self().into_response()
    }
}

impl<S, F, R> IntoHandler<S, fn(&mut Request)> for F
where
    F: Fn(&mut Request) -> R + Send + Sync + 'static,
    R: IntoResponse,
{
    fn call(&self, _: &S, request: &mut Request) -> Response {
        self(request).into_response()
    }
}

impl<S, F, R> IntoHandler<S, fn(&S)> for F
where
    F: Fn(&S) -> R + Send + Sync + 'static,
    R: IntoResponse,
{
    fn call(&self, state: &S, _: &mut Request) -> Response {
        self(state).into_response()
    }
}

impl<S, F, R> IntoHandler<S, fn(&S, &mut Request)> for F
where
    F: Fn(&S, &mut Request) -> R + Send + Sync + 'static,
    R: IntoResponse,
{
    fn call(&self, state: &S, request: &mut Request) -> Response {
        self(state, request).into_response()
    }
}

/// Returns a handler that has its state.
pub(crate) fn with_state<S, A>(state: &Arc<S>, handler: impl IntoHandler<S, A>) -> Arc<Handler>
where
    S: Send + Sync + 'static,
{
    let state = Arc::clone(state);
    Arc::new(move |request: &mut Request| handler.call(&state, request))
}

/// A function that wraps handlers: it takes the request and the [`Handler`] that it wraps. This
/// crate has some, such as [`Cors`](crate::Cors). [`Server::with`](crate::Server::with) adds one.
///
/// # Examples
/// ```
/// use pirn_http::{Error, Handler, Request, Response, Server, Status};
/// fn authorized(request: &mut Request, inner: &Handler) -> Result<Response, Error> {
///     match request.header("authorization") {
///         Some("Bearer secret") => Ok(inner(request)),
///         _ => Err(Status::UNAUTHORIZED.into()),
///     }
/// }
/// let server = Server::new().get("/", || "in").with(authorized);
/// assert_eq!(server.client().get("/").status, Status::UNAUTHORIZED);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a middleware",
    note = "a middleware is a function of (&mut Request, &Handler) that is Send, Sync and 'static, \
            and returns what is IntoResponse; a closure says the types of its parameters: \
            |request: &mut Request, inner: &Handler| ..."
)]
pub trait Middleware: Send + Sync + 'static {
    /// Handles a request, by what is `inner`, or without it.
    fn handle(&self, request: &mut Request, inner: &Handler) -> Response;

    /// The server has refused a request before a handler could see it, because it is malformed, or
    /// is not served. The server tells its own middleware only, not the middleware of a nested
    /// router.
    fn refused(&self, refused: &Refused<'_>) {
        let _ = refused;
    }
}

impl<F, R> Middleware for F
where
    F: Fn(&mut Request, &Handler) -> R + Send + Sync + 'static,
    R: IntoResponse,
{
    fn handle(&self, request: &mut Request, inner: &Handler) -> Response {
        self(request, inner).into_response()
    }
}

/// Returns a handler with middleware around it; the last one is outermost.
pub(crate) fn within(middleware: &[Arc<dyn Middleware>], handler: Arc<Handler>) -> Arc<Handler> {
    middleware.iter().fold(handler, |inner, around| {
        let around = Arc::clone(around);
        Arc::new(move |request: &mut Request| around.handle(request, &*inner))
    })
}
