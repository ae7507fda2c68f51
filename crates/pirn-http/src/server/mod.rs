//! Servers: routes, listeners, their end.

mod hangups;
mod listener;
pub(crate) mod shared;
pub(crate) mod watch;

use crate::client::Client;
use crate::h1::connection::Connection;
use crate::memory;
use crate::poison::locked;
use crate::request::Request;
use crate::response::{IntoResponse, Response};
use crate::router::Router;
use crate::stream::Stream;
#[cfg(feature = "tls")]
use crate::tls::{Tls, TlsStream};
use http::Method;
use listener::Arrival;
pub use listener::Listener;
use pirn::thread::{self, Thread};
use shared::{Handler, Limits, Shared};
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
#[cfg(feature = "tls")]
use watch::Limit;
use watch::{Seat, Timeouts, Watch};

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
#[derive(Default)]
#[must_use = "a server serves after `bind`"]
pub struct Server {
    router: Router,
    layers: Vec<Layer>,
    limits: Limits,
    timeouts: Timeouts,
    half_close: bool,
}

impl Server {
    /// Returns a server without routes.
    pub fn new() -> Server {
        Server::default()
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

    /// Sets how much clients may send.
    pub fn limits(self, limits: Limits) -> Server {
        Server { limits, ..self }
    }

    /// Sets how long clients may take.
    pub fn timeouts(self, timeouts: Timeouts) -> Server {
        Server { timeouts, ..self }
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
            limits,
            timeouts,
            half_close,
        } = self;
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
            limits,
            half_close,
            watch: Watch::new(timeouts),
            stopping,
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

/// A server that listens.
#[derive(Debug)]
#[must_use = "it serves by `serve`"]
pub struct Bound {
    shared: Arc<Shared>,
    listeners: Vec<Listener>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Bound {
    /// Serves the clients of another listener as well.
    pub fn and(mut self, listener: impl Into<Listener>) -> Bound {
        self.listeners.push(listener.into());
        self
    }

    /// Returns the address of the first listener of TCP.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.listeners.iter().find_map(Listener::local_addr)
    }

    /// Starts to serve, on threads of its own.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn start(self) -> io::Result<Running> {
        let address = self.local_addr();
        let watch = &self.shared.watch;
        watch.notice_hang_ups(self.shared.half_close)?;
        let (limits, clients) = (Arc::clone(watch), Arc::clone(watch));
        let hang_ups = spawn("http-hang-ups", move || clients.follow_clients())?;
        spawn("http-watch", move || limits.run())?;
        let mut acceptors = Vec::new();
        for listener in self.listeners {
            let shared = Arc::clone(&self.shared);
            let accept = move || accept_all(&listener, &shared);
            acceptors.push(spawn("http-accept", accept)?);
        }
        Ok(Running {
            shared: self.shared,
            acceptors: Mutex::new(acceptors),
            hang_ups: Thread::clone(hang_ups.thread()),
            address,
        })
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn serve(self) -> io::Result<()> {
        self.start()?.join();
        Ok(())
    }
}

/// A server that serves. Dropping it goes on serving.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    acceptors: Mutex<Vec<thread::JoinHandle<()>>>,
    hang_ups: Thread,
    address: Option<SocketAddr>,
}

impl Running {
    /// Returns the address of the first listener of TCP.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns how many connections there are.
    pub fn connections(&self) -> usize {
        self.shared.watch.count()
    }

    /// Waits until the listeners have been closed, by [`shutdown`](Self::shutdown).
    pub fn join(&self) {
        let acceptors = std::mem::take(&mut *self.lock());
        acceptors
            .into_iter()
            .for_each(|acceptor| drop(acceptor.join()));
    }

    /// Ends the server: no more connections are accepted, those that wait for a request are closed,
    /// requests that have begun are answered with `Connection: close`. After the
    /// [grace](Timeouts::grace) their threads are interrupted. Returns how many connections are
    /// left a second after that; usually none.
    pub fn shutdown(&self) -> usize {
        let (shared, watch) = (&self.shared, &self.shared.watch);
        shared.stopping.store(true, SeqCst);
        let threads = Vec::from_iter(self.lock().iter().map(|one| Thread::clone(one.thread())));
        threads.iter().for_each(Thread::interrupt);
        self.join();
        let grace = Instant::now() + watch.timeouts.grace;
        while watch.count() > 0 && Instant::now() < grace {
            watch.dismiss_idle(); // Again: a request may have ended since.
            watch.wait_for_end(Duration::from_millis(10));
        }
        let end = Instant::now() + Duration::from_secs(1);
        while watch.count() > 0 && Instant::now() < end {
            watch.interrupt_all();
            watch.wait_for_end(Duration::from_millis(100));
        }
        watch.end();
        self.hang_ups.interrupt();
        watch.count()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<thread::JoinHandle<()>>> {
        locked(&self.acceptors)
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.into()).spawn(run)
}

/// Accepts connections until the server is shut down. Each gets a thread.
fn accept_all(listener: &Listener, shared: &Arc<Shared>) {
    // How long to wait for a connection to end, where no more can be accepted.
    const PAUSE: Duration = Duration::from_millis(100);
    while !shared.is_stopping() {
        if shared.watch.count() >= shared.limits.connections {
            shared.watch.wait_for_end(PAUSE);
            continue;
        }
        match listener.accept() {
            Ok(arrival) => begin(arrival, shared),
            Err(_) if shared.is_stopping() => return,
            // The client is gone already: the next.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // No descriptors, or no memory, until a connection ends.
            Err(_) => shared.watch.wait_for_end(PAUSE),
        }
    }
}

/// Serves a connection on a thread of its own.
fn begin(arrival: Arrival, shared: &Arc<Shared>) {
    let seat = shared.watch.seat();
    let shared = Arc::clone(shared);
    let serve = move || {
        seat.sit_down();
        if let Some(stream) = shake_hands(arrival, &seat) {
            seat.follow(&stream);
            Connection::new(stream, shared, seat).serve();
        }
    };
    // Without memory for a thread, the stream is closed: the client sees that.
    drop(thread::Builder::new().spawn(serve));
}

/// Agrees with the client about TLS, if that is spoken there.
#[cfg(feature = "tls")]
fn shake_hands(arrival: Arrival, seat: &Seat) -> Option<Stream> {
    let Some(tls) = arrival.tls else {
        return Some(arrival.stream);
    };
    seat.limit(Limit::Handshake);
    // Failure: the client has been told why, if it is still there.
    let stream = TlsStream::accept(arrival.stream, &tls).ok()?;
    Some(Stream::Tls(Box::new(stream)))
}

#[cfg(not(feature = "tls"))]
fn shake_hands(arrival: Arrival, _: &Seat) -> Option<Stream> {
    Some(arrival.stream)
}

/// Returns the client's end of a connection inside the process.
pub(crate) fn connect(shared: &Arc<Shared>) -> memory::Pipe {
    let (client, server) = memory::pair();
    begin(Arrival::plain(Stream::Memory(Arc::new(server))), shared);
    client
}
