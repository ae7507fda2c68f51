//! What connections know of their server.

use crate::fields::Head;
use crate::limits::Limits;
use crate::limits::watch::Watch;
use crate::refusal::Refused;
use crate::response::Response;
use crate::upgrade::Upgraded;
use http::HeaderMap;
use pirn::thread::Builder;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// What serves a connection that does not speak HTTP.
pub(crate) type Protocol = dyn Fn(Upgraded) -> io::Result<()> + Send + Sync;

/// The kind of thread that serves a connection, with its configuration.
pub(crate) enum Threads {
    Virtual(Builder),
    Platform(Box<dyn Fn() -> std::thread::Builder + Send + Sync>),
}

impl Threads {
    /// Starts a thread that is not joined. Dumps name the caller as the place where it was spawned.
    #[track_caller]
    pub(crate) fn spawn(&self, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        match self {
            Threads::Virtual(builder) => builder.clone().spawn(body).map(drop),
            Threads::Platform(builder) => builder().spawn(body).map(drop),
        }
    }
}

/// What all connections of a server share.
pub(crate) struct Shared {
    /// The paths of the router.
    pub(crate) routes: Box<[Arc<str>]>,
    /// `None`: the connections speak HTTP.
    pub(crate) protocol: Option<Box<Protocol>>,
    pub(crate) limits: Limits,
    /// The threads of the connections.
    pub(crate) threads: Threads,
    /// A client that sends no more may still listen.
    pub(crate) half_close: bool,
    /// Clients may speak HTTP/2.
    #[cfg_attr(
        not(any(feature = "http2", feature = "tls")),
        expect(dead_code, reason = "there is nothing to choose")
    )]
    pub(crate) http2: bool,
    pub(crate) watch: Arc<Watch>,
    pub(crate) stopping: AtomicBool,
}

impl Shared {
    /// Returns a builder for the thread of a stream, which is virtual in any case.
    #[cfg(feature = "http2")]
    pub(crate) fn stream_thread(&self) -> Builder {
        match &self.threads {
            Threads::Virtual(builder) => builder.clone(),
            Threads::Platform(_) => Builder::new(),
        }
    }

    /// Returns whether the server has been shut down.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What serves the requests that come by a connection of HTTP/1 or a stream of HTTP/2, `C`.
pub(crate) trait Serve<C>: Sync {
    /// Has a request handled. The connection is the request's until then.
    fn handle(&self, head: Head, connection: Box<C>) -> Handled<C>;

    /// Notes that a request has been refused.
    fn refused(&self, refused: &Refused<'_>);
}

/// A request that has been handled.
pub(crate) struct Handled<C> {
    pub(crate) connection: Box<C>,
    /// What the handler has returned; `None`: it has panicked.
    pub(crate) response: Option<Response>,
    /// The handler took longer than the server allows.
    pub(crate) is_late: bool,
    /// The fields after the response's body.
    pub(crate) trailers: Option<Box<HeaderMap>>,
}
