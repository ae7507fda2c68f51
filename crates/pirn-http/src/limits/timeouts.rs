//! How long clients, handlers, and the end of a server may take.

use std::time::Duration;

/// How long clients may take.
///
/// # Examples
/// ```
/// use pirn_http::Timeouts;
/// use std::time::Duration;
/// let timeouts = Timeouts::default().idle(Duration::from_secs(5));
/// # let _ = timeouts;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    pub(crate) handshake: Duration,
    pub(crate) idle: Duration,
    pub(crate) head: Duration,
    pub(crate) handler: Option<Duration>,
    pub(crate) upload: Option<Duration>,
    pub(crate) grace: Duration,
    /// For the first bytes of a body.
    pub(crate) start: Duration,
    /// The least bytes per second after that.
    pub(crate) rate: u64,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            head: Duration::from_secs(10),
            handler: None,
            upload: None,
            grace: Duration::from_secs(30),
            start: Duration::from_secs(5),
            rate: 500,
        }
    }
}

impl Timeouts {
    /// How long a client may take to agree about TLS; 10 s.
    #[must_use]
    pub fn handshake(self, handshake: Duration) -> Timeouts {
        Timeouts { handshake, ..self }
    }

    /// How long a connection may wait for its next request, the longest pause of a
    /// [body](Self::body), and of a client that takes what a WebSocket, or another protocol, sends
    /// it; 75 s.
    #[must_use]
    pub fn idle(self, idle: Duration) -> Timeouts {
        Timeouts { idle, ..self }
    }

    /// How long the head of a request may take from its first byte; 10 s. Then the answer is 408.
    #[must_use]
    pub fn head(self, head: Duration) -> Timeouts {
        Timeouts { head, ..self }
    }

    /// How slow a body may be, in either direction: after `start`, it has to move by `rate` bytes
    /// per second on average; 5 s and 500. Only the time counts in which the server waits for the
    /// client, not that in which a handler makes the next bytes. The streams of a connection of
    /// HTTP/2 share what its client can do: one of them may pause as long as the others move
    /// together by that much.
    ///
    /// Over HTTP/1.1 an answer is written in pieces of up to 64 KiB, and a piece that is taken
    /// slowly looks like a pause: it has the time of [`idle`](Self::idle). With the defaults that
    /// is 870 bytes per second, once the kernel's buffers are full.
    #[must_use]
    pub fn body(self, start: Duration, rate: u64) -> Timeouts {
        Timeouts {
            start,
            rate: rate.max(1),
            ..self
        }
    }

    /// How long the body of a request may take as a whole, from when a handler begins to read it;
    /// without a limit by default. Then reading it fails with
    /// [`TimedOut`](std::io::ErrorKind::TimedOut), and the answer is 408;
    /// [`Request::is_upload_late`](crate::Request::is_upload_late) says so to the handler.
    ///
    /// It is for handlers that let bodies be large or without an announced length: a client that
    /// keeps to the rate of [`body`](Self::body) may go on for days.
    #[must_use]
    pub fn upload(self, upload: Duration) -> Timeouts {
        Timeouts {
            upload: Some(upload),
            ..self
        }
    }

    /// How long a handler may take, without a limit by default. Then its thread is interrupted:
    /// what it waits for ends with an error, and unless it has responded before, the answer is 503.
    #[must_use]
    pub fn handler(self, handler: Duration) -> Timeouts {
        Timeouts {
            handler: Some(handler),
            ..self
        }
    }

    /// How long requests may take after the server has been shut down; 30 s. Then their threads are
    /// interrupted.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Timeouts {
        Timeouts { grace, ..self }
    }

    /// Returns the shortest of the times that clients and handlers have.
    pub(super) fn shortest(&self) -> Duration {
        let Timeouts {
            handshake,
            idle,
            head,
            handler,
            upload,
            start,
            ..
        } = *self;
        let optional = handler.into_iter().chain(upload);
        let all = optional.chain([handshake, idle, head, start]);
        all.min().unwrap_or_default()
    }

    /// Returns how many bytes are enough for the time that the first ones of a body have.
    #[cfg(feature = "http2")]
    pub(crate) fn enough(&self) -> u64 {
        self.rate.saturating_mul(self.start.as_secs().max(1))
    }

    /// Returns how often that time fits into the longest pause.
    #[cfg(feature = "http2")]
    pub(crate) fn most_extensions(&self) -> u128 {
        self.idle.as_millis() / self.start.as_millis().max(1)
    }
}
