//! Servers: routes, listeners, their end.

mod acceptor;
mod hangups;
mod listener;
mod pace;
mod running;
pub(crate) mod shared;
pub(crate) mod timeouts;
pub(crate) mod watch;

use crate::client::Client;
use crate::observe::{Observation, OfRefused};
use crate::request::Request;
use crate::response::{IntoResponse, Response};
use crate::router::Router;
#[cfg(feature = "tls")]
use crate::tls::Tls;
pub use acceptor::{Acceptor, tcp_acceptor};
use http::Method;
pub use listener::Listener;
use pirn::thread::Builder;
pub(crate) use running::connect;
pub use running::{Bound, Running};
use shared::{Handler, Limits, Protocol, Shared, Threads};
use std::fmt;
use std::io;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use timeouts::Timeouts;
use watch::Watch;

/// A middleware: a function around all that is inside.
type Layer = Box<dyn FnOnce(Box<Handler>) -> Box<Handler>>;

/// A server, while it is described.
///
/// # Examples
/// ```no_run
/// use pirn_http::{Request, Server, Status};
/// fn main() -> std::io::Result<()> {
///     Server::new()
///         .get("/", |_: &mut Request| "Hello, World!")
///         .get("/users/{id}", |request: &mut Request| -> Result<String, Status> {
///             Ok(format!("user {}", request.path("id")?))
///         })
///         .bind("127.0.0.1:8080")?
///         .serve()
/// }
/// ```
#[must_use = "a server serves after `bind`"]
pub struct Server {
    router: Router,
    layers: Vec<Layer>,
    refused: Vec<Box<OfRefused>>,
    limits: Limits,
    timeouts: Timeouts,
    threads: Threads,
    half_close: bool,
    http2: bool,
    /// What connections speak in place of HTTP.
    protocol: Option<Box<Protocol>>,
}

impl Default for Server {
    fn default() -> Server {
        Server::new()
    }
}

impl Server {
    /// Returns a server without routes.
    pub fn new() -> Server {
        Server {
            router: Router::default(),
            layers: Vec::new(),
            refused: Vec::new(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            threads: Threads::Virtual(Builder::new()),
            half_close: false,
            http2: cfg!(feature = "http2"),
            protocol: None,
        }
    }

    /// Adds a handler for a method and a path. Parts of the path in braces match one segment,
    /// `{*rest}` matches all that follows.
    ///
    /// # Panics
    /// If the path is none, contradicts another, or has a handler of this method already.
    pub fn route<R: IntoResponse>(
        mut self,
        method: Method,
        path: &str,
        handler: impl Fn(&mut Request) -> R + Send + Sync + 'static,
    ) -> Server {
        self.router.add(Some(method), path, boxed(handler));
        self
    }

    /// Adds a handler for `GET`, and for `HEAD`, whose body is left out.
    ///
    /// # Panics
    /// As [`route`](Self::route).
    pub fn get<R: IntoResponse>(
        self,
        path: &str,
        handler: impl Fn(&mut Request) -> R + Send + Sync + 'static,
    ) -> Server {
        self.route(Method::GET, path, handler)
    }

    /// Adds a handler for `POST`.
    ///
    /// # Panics
    /// As [`route`](Self::route).
    pub fn post<R: IntoResponse>(
        self,
        path: &str,
        handler: impl Fn(&mut Request) -> R + Send + Sync + 'static,
    ) -> Server {
        self.route(Method::POST, path, handler)
    }

    /// Adds a handler for `PUT`.
    ///
    /// # Panics
    /// As [`route`](Self::route).
    pub fn put<R: IntoResponse>(
        self,
        path: &str,
        handler: impl Fn(&mut Request) -> R + Send + Sync + 'static,
    ) -> Server {
        self.route(Method::PUT, path, handler)
    }

    /// Adds a handler for `DELETE`.
    ///
    /// # Panics
    /// As [`route`](Self::route).
    pub fn delete<R: IntoResponse>(
        self,
        path: &str,
        handler: impl Fn(&mut Request) -> R + Send + Sync + 'static,
    ) -> Server {
        self.route(Method::DELETE, path, handler)
    }

    /// Adds a handler for all methods of a path that have none of their own.
    ///
    /// # Panics
    /// As [`route`](Self::route).
    pub fn any<R: IntoResponse>(
        mut self,
        path: &str,
        handler: impl Fn(&mut Request) -> R + Send + Sync + 'static,
    ) -> Server {
        self.router.add(None, path, boxed(handler));
        self
    }

    /// Adds a handler of WebSockets: it gets each that is opened for a path, on the connection's
    /// own thread. The socket is closed when it returns.
    ///
    /// For what depends on the request there is [`Request::websocket`].
    ///
    /// # Panics
    /// As [`route`](Self::route).
    #[cfg(feature = "websocket")]
    pub fn websocket<F>(self, path: &str, handler: F) -> Server
    where
        F: Fn(crate::WebSocket) -> io::Result<()> + Send + Sync + 'static,
    {
        let handler = Arc::new(handler);
        self.get(path, move |request: &mut Request| {
            let handler = Arc::clone(&handler);
            request.websocket(move |socket| handler(socket))
        })
    }

    /// Adds a handler for a path without its last slash, for that with it, and for all beneath it,
    /// which the route calls `rest`. `None`: for all methods.
    #[cfg(any(feature = "files", feature = "tower"))]
    pub(crate) fn route_beneath<R: IntoResponse>(
        mut self,
        method: Option<Method>,
        prefix: &str,
        rest: &str,
        handler: impl Fn(&mut Request) -> R + Send + Sync + 'static,
    ) -> Server {
        let handler = boxed(handler);
        let below = ["/".to_owned(), format!("/{rest}")].map(|end| format!("{prefix}{end}"));
        let own = Some(prefix.to_owned()).filter(|prefix| !prefix.is_empty());
        for path in own.into_iter().chain(below) {
            self.router.add(method.clone(), &path, Arc::clone(&handler));
        }
        self
    }

    /// Puts a function around all handlers, also around the answers 404 and 405. The one added last
    /// is outermost.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Response, Server, Status};
    /// let server = Server::new()
    ///     .get("/", |_: &mut Request| "in")
    ///     .with(|request: &mut Request, inner| match request.header("authorization") {
    ///         Some("Bearer secret") => inner(request),
    ///         _ => Response::new(Status::UNAUTHORIZED),
    ///     });
    /// assert_eq!(server.client().get("/").status, Status::UNAUTHORIZED);
    /// ```
    pub fn with(
        mut self,
        layer: impl Fn(&mut Request, &Handler) -> Response + Send + Sync + 'static,
    ) -> Server {
        let around = |inner: Box<Handler>| -> Box<Handler> {
            Box::new(move |request: &mut Request| layer(request, &*inner))
        };
        self.layers.push(Box::new(around));
        self
    }

    /// Has an access log, or metrics, see all requests: those that handlers see, as
    /// [`with`](Self::with) its layer does, and those that are refused before, because they are no
    /// requests, or none that is served.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Server, observe::{AccessLog, Metrics}};
    /// let metrics = Metrics::new();
    /// let server = Server::new()
    ///     .get("/", |_: &mut Request| "Hello, World!")
    ///     .get("/metrics", metrics.handler())
    ///     .observe(&metrics)
    ///     .observe(AccessLog::new(std::io::stderr()));
    /// server.client().send(b"nonsense\r\n\r\n");
    /// let line = "http_requests_total{route=\"none\",method=\"other\",status=\"4xx\"} 1\n";
    /// assert!(metrics.text().contains(line));
    /// ```
    pub fn observe(mut self, observation: impl Into<Observation>) -> Server {
        let Observation { layer, of_refused } = observation.into();
        self.refused.push(of_refused);
        self.with(layer)
    }

    /// Sets how much clients may send.
    pub fn limits(self, limits: Limits) -> Server {
        Server { limits, ..self }
    }

    /// Sets how long clients may take.
    pub fn timeouts(self, timeouts: Timeouts) -> Server {
        Server { timeouts, ..self }
    }

    /// Sets the builder of the connections' threads, on which the handlers run: with stacks of
    /// another size, with names or a scheduler. By default they are as
    /// [`spawn`](pirn::thread::spawn) makes them.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread::Builder;
    /// use pirn_http::{Request, Server};
    /// let server = Server::new()
    ///     .get("/", |_: &mut Request| pirn::thread::current().name().map(str::to_owned))
    ///     .threads(Builder::new().name_counter("request-", 0).stack_size(8 << 20));
    /// assert_eq!(server.client().get("/").text(), "request-0");
    /// ```
    pub fn threads(self, threads: Builder) -> Server {
        Server {
            threads: Threads::Virtual(threads),
            ..self
        }
    }

    /// Sets that the connections have platform threads, which `builder` configures one by one.
    ///
    /// They are for handlers that need the kernel's threads. They cannot be interrupted while they
    /// wait for a client: their [`Timeouts`] do not hold, a client that hangs up ends no handler,
    /// and [`shutdown`](Running::shutdown) cannot end an idle connection. The streams of HTTP/2
    /// have virtual threads in any case.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Server};
    /// let server = Server::new()
    ///     .get("/", |_: &mut Request| pirn::thread::current().is_virtual().to_string())
    ///     .platform_threads(|| std::thread::Builder::new().stack_size(8 << 20));
    /// assert_eq!(server.client().get("/").text(), "false");
    /// ```
    pub fn platform_threads(
        self,
        builder: impl Fn() -> std::thread::Builder + Send + Sync + 'static,
    ) -> Server {
        Server {
            threads: Threads::Platform(Box::new(builder)),
            ..self
        }
    }

    /// Says that a client that sends no more may still wait for its answer, as `nc -N` does.
    ///
    /// Without it, a handler is interrupted when its client closes the connection, even if only its
    /// own direction: what the handler waits for ends with an error, so that nobody works for a
    /// client that is gone. That a client has gone completely is noticed in either case, but often
    /// not before something is sent to it.
    pub fn half_close(self, allowed: bool) -> Server {
        Server {
            half_close: allowed,
            ..self
        }
    }

    /// Says whether clients may speak HTTP/2; they may. By TLS they choose, and prefer it mostly;
    /// without TLS those that know that it is spoken here begin with it.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Request, Server};
    /// let server = Server::new().get("/", |_: &mut Request| "Hello, World!").http2(false);
    /// # let _ = server;
    /// ```
    #[cfg(feature = "http2")]
    pub fn http2(self, allowed: bool) -> Server {
        Server {
            http2: allowed,
            ..self
        }
    }

    /// Listens on an address.
    ///
    /// # Errors
    /// If the address is not available.
    pub fn bind(self, address: impl ToSocketAddrs) -> io::Result<Bound> {
        Ok(self.listen(Listener::tcp(address)?))
    }

    /// Listens on an address for clients that speak TLS.
    ///
    /// # Errors
    /// If the address is not available.
    #[cfg(feature = "tls")]
    pub fn bind_tls(self, address: impl ToSocketAddrs, tls: &Tls) -> io::Result<Bound> {
        Ok(self.listen(Listener::tcp(address)?.tls(tls)))
    }

    /// Serves the clients of a [`Listener`], a `TcpListener` or a `UnixListener`.
    pub fn listen(self, listener: impl Into<Listener>) -> Bound {
        Bound {
            shared: self.into_shared(),
            listeners: vec![listener.into()],
        }
    }

    /// Returns a client of this server for tests. There are no sockets; all else is as in a server
    /// that serves.
    pub fn client(self) -> Client {
        Client::new(self.into_shared())
    }

    fn into_shared(self) -> Arc<Shared> {
        let Server {
            router,
            layers,
            refused,
            mut limits,
            timeouts,
            threads,
            half_close,
            http2,
            protocol,
        } = self;
        if limits.connections == usize::MAX {
            limits.connections = shared::most_connections();
        }
        let routes = router.paths();
        let inner: Box<Handler> = Box::new(move |request: &mut Request| router.handle(request));
        let handler = layers.into_iter().fold(inner, |inner, layer| layer(inner));
        let handler = Box::new(move |request: &mut Request| {
            let mut response = handler(request);
            request.complete(&mut response);
            response
        });
        let stopping = AtomicBool::new(false);
        Arc::new(Shared {
            handler,
            routes,
            protocol,
            limits,
            threads,
            half_close,
            http2,
            watch: Watch::new(timeouts),
            stopping,
            refused,
        })
    }
}

/// Returns a path without its last slash, for what serves all that is beneath it.
///
/// # Panics
/// If the path has parts in braces.
#[cfg(any(feature = "files", feature = "tower"))]
pub(crate) fn beneath<'p>(path: &'p str, what: &str) -> &'p str {
    assert!(
        !path.contains('{'),
        "the path of {what}, {path}, has parts in braces"
    );
    path.trim_end_matches('/')
}

fn boxed<R: IntoResponse>(
    handler: impl Fn(&mut Request) -> R + Send + Sync + 'static,
) -> Arc<Handler> {
    Arc::new(move |request: &mut Request| handler(request).into_response())
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}
