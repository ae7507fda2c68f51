//! What clients may ask of a server: how much, how fast, and for how long.
//!
//! [`watch`] ends what takes too long, [`hangups`] notices clients that go, [`seats`] has all
//! connections for both. They know connections, and nothing of what is spoken on them.

mod hangups;
mod pace;
mod seats;
pub(crate) mod timeouts;
pub(crate) mod watch;

/// The limits of a head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadLimits {
    /// The maximum number of bytes.
    pub(crate) bytes: usize,
    /// The maximum number of header fields.
    pub(crate) fields: usize,
}

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
    pub(crate) head: HeadLimits,
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
            head: HeadLimits {
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
    /// answer is 413. A handler may [allow more](crate::Request::allow_body).
    #[must_use]
    pub fn body(self, bytes: u64) -> Limits {
        Limits {
            body: bytes,
            ..self
        }
    }

    /// The maximum number of connections. Others wait, all but one in the listener's queue; while
    /// they do, those that have waited for a request for longer than a second are closed, the
    /// longest first.
    ///
    /// By default they are three quarters of the descriptors that the process may have, without a
    /// few that the server itself needs; so handlers find some for files, and for connections to
    /// others. A connection of HTTP/2 counts as one, whatever its streams open:
    /// [`limit_concurrency`](crate::limit_concurrency) bounds that.
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

/// What the process itself has open: listeners, epoll sets, a log.
const RESERVE: u64 = 24;

/// Returns how many connections there may be unless it is said: of what is left of the descriptors,
/// a quarter is kept for what handlers open.
pub(crate) fn most_connections() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, connections_of)
}

fn connections_of(limit: u64) -> usize {
    let most = limit.saturating_sub(RESERVE) / 4 * 3;
    usize::try_from(most).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_process_and_for_handlers() {
        let all = [0, 24, 64, 1024, u64::MAX].map(connections_of);
        assert_eq!(all[..4], [1, 1, 30, 750]);
        assert!(all[4] > 1 << 60);
    }
}
