//! Clients that hang up while their request is handled: the handler is interrupted, whatever it
//! waits for.
//!
//! Each connection is added, once, to a set of epoll that reports only that its client sends no
//! more (`EPOLLRDHUP`, edge-triggered). One thread per server waits for that set.
//!
//! ```text
//!   client   0                          no handler runs
//!            HANDLING                   --hung up-->  HANDLING | GONE | INTERRUPTED, interrupt
//!            GONE                       it hung up while no handler ran
//!   begin    0 -> HANDLING              GONE -> HANDLING | GONE | INTERRUPTED, interrupt
//!   end      ... -> 0 or GONE           if INTERRUPTED: the interrupt is taken back
//! ```
//!
//! The interrupt is the handler's only: what it returns is sent nevertheless, since a client that
//! has closed just its own direction still listens.
//!
//! Rejected: reading ahead, as Go does: the byte that comes has to be kept, and the thread would
//! need another one for it.

use super::seats::State;
use crate::stream::Stream;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use pirn::thread;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

/// How many clients are looked after at once.
const EVENTS: usize = 64;

const HANDLING: u8 = 1;
const GONE: u8 = 2;
const INTERRUPTED: u8 = 4;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Client(AtomicU8);

impl Client {
    /// Notes that a handler begins.
    pub(super) fn begin(&self) {
        let before = self.0.fetch_or(HANDLING, SeqCst);
        if before & GONE != 0 {
            self.0.fetch_or(INTERRUPTED, SeqCst);
            thread::current().interrupt();
        }
    }

    /// Notes that the handler has ended. Returns whether it has been interrupted, or will be at any
    /// moment.
    pub(super) fn end(&self) -> bool {
        self.0.fetch_and(GONE, SeqCst) & INTERRUPTED != 0
    }

    /// Notes that the client has hung up. Returns whether the thread is to be interrupted for it.
    pub(super) fn hang_up(&self) -> bool {
        let next = |now| match now & HANDLING {
            0 => now | GONE,
            _ => now | GONE | INTERRUPTED,
        };
        let before = self.0.fetch_update(SeqCst, SeqCst, |now| Some(next(now)));
        before.is_ok_and(|before| before & (HANDLING | INTERRUPTED) == HANDLING)
    }

    /// Returns whether the client has hung up.
    pub(super) fn is_gone(&self) -> bool {
        self.0.load(SeqCst) & GONE != 0
    }
}

/// The set of all connections.
pub(super) struct HangUps {
    set: Epoll,
    flags: EpollFlags,
}

impl HangUps {
    /// Returns an empty set. `half_close`: a client that sends no more may still listen.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub(super) fn new(half_close: bool) -> io::Result<HangUps> {
        Ok(HangUps {
            set: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            // That both directions are closed, or the connection is reset, is reported anyway.
            flags: match half_close {
                true => EpollFlags::EPOLLET,
                false => EpollFlags::EPOLLET | EpollFlags::EPOLLRDHUP,
            },
        })
    }

    /// Adds a connection, until it is closed. Without memory in the kernel, the handlers of this
    /// connection are not interrupted.
    pub(super) fn add(&self, stream: &Stream, number: u64) {
        if let Some(descriptor) = stream.socket() {
            let event = EpollEvent::new(self.flags, number);
            let _ = self.set.add(descriptor, event);
        }
    }

    /// Interrupts the threads whose clients hang up, until this thread is interrupted and `is_over`
    /// says so.
    pub(super) fn run(&self, find: impl Fn(u64) -> Option<Arc<State>>, is_over: impl Fn() -> bool) {
        let mut events = [EpollEvent::empty(); EVENTS];
        while !is_over() {
            // Failure: an interrupt.
            let count = self.set.wait(&mut events, EpollTimeout::NONE).unwrap_or(0);
            for event in &events[..count] {
                // It may have ended by now.
                if let Some(seat) = find(event.data())
                    && seat.client.hang_up()
                {
                    seat.interrupt();
                }
            }
        }
    }
}
