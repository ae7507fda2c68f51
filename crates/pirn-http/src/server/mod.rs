//! Servers: routes, listeners, their end.

mod acceptor;
mod client;
mod handlers;
mod listener;
mod running;

use crate::handler::{Handler, IntoHandler, Middleware, within};
use crate::limits::Limits;
use crate::limits::timeouts::Timeouts;
use crate::limits::watch::Watch;
use crate::request::Request;
use crate::router::{Router, routing};
use crate::shared::{Protocol, Shared, Threads};
#[cfg(feature = "tls")]
use crate::tls::Tls;
pub use acceptor::{Acceptor, tcp_acceptor};
pub use client::{Answer, Client};
use handlers::Handlers;
use http::Method;
pub use listener::Listener;
use pirn::thread::Builder;
use running::serve;
pub use running::{Bound, Running};
use std::fmt;
use std::io;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A server, while it is described.
///
/// # Examples
/// ```no_run
/// use pirn_http::{Error, Request, Server};
/// fn main() -> std::io::Result<()> {
///     Server::new()
///         .get("/", || "Hello, World!")
///         .get("/users/{id}", |request: &mut Request| -> Result<String, Error> {
///             let id: u64 = request.param("id")?;
///             Ok(format!("user {id}"))
///         })
///         .bind("127.0.0.1:8080")?
///         .serve()
/// }
/// ```
#[must_use = "a server serves after `bind`"]
pub struct Server<S = ()> {
    router: Router<S>,
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
        Server::with_state(())
    }
}

impl<S: Send + Sync + 'static> Server<S> {
    /// Returns a server without routes, whose handlers may take this state: a pool of connections,
    /// a configuration, or a structure of all that they share.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::{Error, Request, Server, Status};
    /// use std::collections::HashMap;
    /// use std::sync::RwLock;
    /// type Users = RwLock<HashMap<u64, String>>;
    ///
    /// fn user(users: &Users, request: &mut Request) -> Result<String, Error> {
    ///     let id = request.param("id")?;
    ///     let users = users.read().unwrap();
    ///     Ok(users.get(&id).ok_or(Status::NOT_FOUND)?.clone())
    /// }
    ///
    /// let users = RwLock::new(HashMap::from([(1, "Ada".to_owned())]));
    /// let client = Server::with_state(users).get("/users/{id}", user).client();
    /// assert_eq!(client.get("/users/1").text(), "Ada");
    /// assert_eq!(client.get("/users/2").status, Status::NOT_FOUND);
    /// ```
    pub fn with_state(state: S) -> Server<S> {
        Server {
            router: Router::with_state(state),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            threads: Threads::Virtual(Builder::new()),
            half_close: false,
            http2: cfg!(feature = "http2"),
            protocol: None,
        }
    }

    fn routes(&mut self) -> &mut Router<S> {
        &mut self.router
    }

    /// Sets how much clients may send.
    pub fn limits(self, limits: Limits) -> Server<S> {
        Server { limits, ..self }
    }

    /// Sets how long clients may take.
    pub fn timeouts(self, timeouts: Timeouts) -> Server<S> {
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
    ///     .get("/", || pirn::thread::current().name().map(str::to_owned))
    ///     .threads(Builder::new().name_counter("request-", 0).stack_size(8 << 20));
    /// assert_eq!(server.client().get("/").text(), "request-0");
    /// ```
    pub fn threads(self, threads: Builder) -> Server<S> {
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
    ///     .get("/", || pirn::thread::current().is_virtual().to_string())
    ///     .platform_threads(|| std::thread::Builder::new().stack_size(8 << 20));
    /// assert_eq!(server.client().get("/").text(), "false");
    /// ```
    pub fn platform_threads(
        self,
        builder: impl Fn() -> std::thread::Builder + Send + Sync + 'static,
    ) -> Server<S> {
        Server {
            threads: Threads::Platform(Box::new(builder)),
            ..self
        }
    }

    /// Says whether a client that sends no more may still wait for its answer, as `nc -N` does; it
    /// may not.
    ///
    /// If it may not, the server interrupts a handler when its client closes the connection, even
    /// if the client closes only its own direction: what the handler waits for ends with an error,
    /// so that it does not work for a client that is gone. In either case the server notices that a
    /// client has gone completely, but often not before it sends something to the client.
    pub fn half_close(self, allowed: bool) -> Server<S> {
        Server {
            half_close: allowed,
            ..self
        }
    }

    /// Says whether clients may speak HTTP/2; they may. With TLS they choose, and most prefer
    /// HTTP/2; without TLS a client that knows that the server speaks HTTP/2 begins with it.
    ///
    /// # Examples
    /// ```
    /// use pirn_http::Server;
    /// let server = Server::new().get("/", || "Hello, World!").http2(false);
    /// # let _ = server;
    /// ```
    #[cfg(feature = "http2")]
    pub fn http2(self, allowed: bool) -> Server<S> {
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
            handlers: self.into_handlers(),
            listeners: vec![listener.into()],
        }
    }

    /// Returns a client of this server for tests. Each request has a pair of sockets of its own;
    /// there is no port, and no [`Timeouts`] of clients and handlers hold.
    pub fn client(self) -> Client {
        Client::new(self.into_handlers())
    }

    fn into_handlers(self) -> Arc<Handlers> {
        let mut limits = self.limits;
        if limits.connections == usize::MAX {
            limits.connections = crate::limits::most_connections();
        }
        let (routes, middleware) = self.router.into_routes();
        let paths = routes.paths();
        let inner: Arc<Handler> = Arc::new(move |request: &mut Request| {
            let mut response = routes.handle(request);
            request.negotiate(&mut response);
            response
        });
        let around = within(&middleware, inner);
        let handler = Box::new(move |request: &mut Request| {
            let mut response = around(request);
            request.negotiate(&mut response);
            request.complete(&mut response);
            response
        });
        let shared = Arc::new(Shared {
            routes: paths,
            protocol: self.protocol,
            limits,
            threads: self.threads,
            half_close: self.half_close,
            http2: self.http2,
            watch: Watch::new(self.timeouts),
            stopping: AtomicBool::new(false),
        });
        Arc::new(Handlers {
            handler,
            middleware,
            shared,
        })
    }
}

routing!(Server);

impl<S> fmt::Debug for Server<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}
