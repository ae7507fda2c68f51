//! What all connections of a server share.

use super::watch::Watch;
use crate::h1::head;
use crate::h1::upgrade::Upgraded;
use crate::observe::{OfRefused, Refused};
use crate::request::Request;
use crate::response::Response;
use pirn::thread::Builder;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// What a [middleware](crate::Server::with) is around: a handler, and the middleware inside.
///
/// # Examples
/// ```
/// use pirn_http::{Handler, Request, Response, Server};
/// fn as_is(request: &mut Request, inner: &Handler) -> Response {
///     inner(request)
/// }
/// let server = Server::new().get("/", |_: &mut Request| "in").with(as_is);
/// assert_eq!(server.client().get("/").text(), "in");
/// ```
pub type Handler = dyn Fn(&mut Request) -> Response + Send + Sync;

/// What serves a connection that does not speak HTTP.
pub(crate) type Protocol = dyn Fn(Upgraded) -> io::Result<()> + Send + Sync;

/// How much clients may send.
///
/// # Examples
/// ```
/// use pirn_http::Limits;
/// let limits = Limits::default().body(64 << 20).connections(50_000);
/// # let _ = limits;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub(crate) head: head::Limits,
    pub(crate) body: u64,
    pub(crate) connections: usize,
    #[cfg_attr(
        not(feature = "http2"),
        expect(dead_code, reason = "there is no HTTP/2")
    )]
    pub(crate) streams: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: head::Limits {
                bytes: 8 * 1024,
                fields: 100,
            },
            body: 2 << 20,
            connections: usize::MAX,
            streams: 100,
        }
    }
}

impl Limits {
    /// The maximum number of bytes of a request's head; 8 KiB. Then the answer is 431, or 414.
    ///
    /// A head of HTTP/2 may have twice as many: each of its fields is counted with 32 bytes more
    /// (RFC 9113, section 6.5.2).
    #[must_use]
    pub fn head(mut self, bytes: usize) -> Limits {
        self.head.bytes = bytes;
        self
    }

    /// The maximum number of header fields of a request; 100. Then the answer is 431.
    #[must_use]
    pub fn fields(mut self, fields: usize) -> Limits {
        self.head.fields = fields;
        self
    }

    /// The maximum number of bytes of a request's body; 2 MiB. Then reading it fails, and the
    /// answer is 413. A handler may [allow more](Request::allow_body).
    #[must_use]
    pub fn body(self, bytes: u64) -> Limits {
        Limits {
            body: bytes,
            ..self
        }
    }

    /// The maximum number of connections. Others wait in the listener's queue; while they do, those
    /// that have waited for a request for longer than a second are closed, the longest first.
    ///
    /// By default they are three quarters of the descriptors that the process may have, so that
    /// handlers find some for files, and connections to others.
    #[must_use]
    pub fn connections(self, connections: usize) -> Limits {
        Limits {
            connections: connections.max(1),
            ..self
        }
    }

    /// The maximum number of requests that are served at the same time on one connection of HTTP/2;
    /// 100. Clients are told, and wait.
    #[cfg(feature = "http2")]
    #[must_use]
    pub fn streams(self, streams: u32) -> Limits {
        Limits {
            streams: streams.max(1),
            ..self
        }
    }

    /// Returns the maximum size of a head in HTTP/2.
    #[cfg(feature = "http2")]
    pub(crate) fn header_list(&self) -> u32 {
        u32::try_from(self.head.bytes * 2).unwrap_or(u32::MAX)
    }
}

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

/// See the module's documentation.
pub(crate) struct Shared {
    pub(crate) handler: Box<Handler>,
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
    /// What is told of requests that no handler sees.
    pub(crate) refused: Vec<Box<OfRefused>>,
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

    pub(crate) fn note_refused(&self, refused: &Refused<'_>) {
        self.refused.iter().for_each(|note| note(refused));
    }

    /// Returns whether the server has been shut down.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }
}

/// Returns how many connections there may be unless it is said: a quarter of the descriptors is
/// kept for what handlers open.
pub(super) fn most_connections() -> usize {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = descriptors.and_then(|count| usize::try_from(count / 4 * 3).ok());
    most.unwrap_or(usize::MAX).max(1)
}
