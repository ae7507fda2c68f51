//! What all connections of a server share.

use crate::handler::{Handler, Middleware};
use crate::limits::Limits;
use crate::limits::watch::Watch;
use crate::refusal::Refused;
use crate::upgrade::Upgraded;
use pirn::thread::Builder;
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
    /// Is told of requests that no handler sees.
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
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
        self.middleware.iter().for_each(|it| it.refused(refused));
    }

    /// Returns whether the server has been shut down.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }
}
