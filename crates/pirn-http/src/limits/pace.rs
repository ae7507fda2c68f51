//! How fast a body moves.

use super::timeouts::Timeouts;
use super::watch::ticks;
use std::cell::Cell;
use std::time::Duration;

/// How fast the present body of a connection or stream moves. Only the time counts in which the
/// client is waited for, not that in which a handler makes the next bytes: else a client that
/// follows a slow handler's events would be late whenever it is waited for at all.
#[derive(Default)]
pub(crate) struct Pace {
    bytes: Cell<u64>,
    /// For how many ticks the client has been waited for.
    waited: Cell<u64>,
    /// Since which tick the client is being waited for.
    since: Cell<Option<u64>>,
    /// How many bytes the connection had moved when the time of the body began.
    #[cfg(feature = "http2")]
    moved_before: Cell<u64>,
}

impl Pace {
    /// Begins to wait for the next piece, and returns when it is due. A pause is limited as well as
    /// the average: the kernel's buffers take megabytes at once, of which a client need not have
    /// read a byte.
    pub(super) fn begin_wait(&self, now: u64, timeouts: &Timeouts) -> u64 {
        self.since.set(Some(now));
        let allowed = self.bytes.get() / timeouts.rate * ticks(Duration::from_secs(1));
        let left = (ticks(timeouts.start) + allowed).saturating_sub(self.waited.get());
        now + 1 + left.min(ticks(timeouts.idle.max(timeouts.start)))
    }

    pub(super) fn end_wait(&self, now: u64) {
        if let Some(since) = self.since.take() {
            self.waited.set(self.waited.get() + (now - since));
        }
    }

    /// Notes that so many bytes have moved.
    pub(super) fn note(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
    }

    /// Notes that the time of a body begins, or begins anew.
    pub(super) fn begin_anew(&self) {
        self.bytes.set(0);
        self.waited.set(0);
    }

    /// Notes how many bytes the connection has moved when the time of a body begins.
    #[cfg(feature = "http2")]
    pub(crate) fn begin_among(&self, moved: u64) {
        self.moved_before.set(moved);
    }

    /// Returns how many bytes the streams of the connection have moved since then, if they have
    /// moved `moved` in all.
    #[cfg(feature = "http2")]
    pub(crate) fn moved_by_all(&self, moved: u64) -> u64 {
        moved - self.moved_before.get()
    }

    /// Returns how many bytes have moved.
    #[cfg(feature = "http2")]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }
}
