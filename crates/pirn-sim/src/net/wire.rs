//! The wire of a connection: for each direction, a virtual thread that reads at one end, and writes
//! at the other when the latency has passed.

use super::{wait_for_link, with};
use crate::{clock, world};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::AcqRel};
use pirn_rt::blocking::fds;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many bytes are on their way at most, as TCP's window would allow.
const WINDOW: usize = 64 << 10;
/// The most bytes of one message.
const MESSAGE: usize = 16 << 10;
/// How long a connection lives while nothing gets through (`tcp_retries2`: 15 attempts).
const PATIENCE: u64 = 924_000_000_000;

/// Lays a wire between two ends, on these nodes.
pub(super) fn lay(ends: [c_int; 2], nodes: [u32; 2]) {
    let number = with(|net| {
        net.messages += 1;
        net.wires.insert(net.messages, (ends, nodes));
        net.messages
    });
    let directions = Arc::new(AtomicU32::new(2));
    for (from, to) in [(0, 1), (1, 0)] {
        let directions = Arc::clone(&directions);
        let direction = Direction {
            from: ends[from],
            to: ends[to],
            nodes: [nodes[from], nodes[to]],
            sent: VecDeque::new(),
        };
        world::spawn_on(world::NOWHERE, move || {
            direction.carry();
            // AcqRel: the last one closes, after all that the other has done.
            if directions.fetch_sub(1, AcqRel) == 1 {
                with(|net| net.wires.remove(&number));
                for end in ends {
                    let _ = fds::close(end);
                }
            }
        });
    }
}

/// One direction.
struct Direction {
    from: c_int,
    to: c_int,
    nodes: [u32; 2],
    /// When each message arrives; an empty one is the end.
    sent: VecDeque<(u64, Vec<u8>)>,
}

impl Direction {
    fn carry(mut self) {
        loop {
            let under_way: usize = self.sent.iter().map(|(_, message)| message.len()).sum();
            let ended = self
                .sent
                .back()
                .is_some_and(|(_, message)| message.is_empty());
            if under_way < WINDOW && !ended && self.readable() {
                self.read();
            }
            if let Some((_, message)) = self.sent.pop_front_if(|it| it.0 <= clock::now())
                && !self.deliver(&message)
            {
                return;
            } else if under_way >= WINDOW || ended {
                self.wait_for_arrival();
            }
        }
    }

    /// Waits until there is something to read. Returns `false` if a message arrives before.
    fn readable(&self) -> bool {
        let timeout = match self.sent.front() {
            None => -1,
            // Rounded up: a message that arrives a little late does no harm.
            Some((arrival, _)) => arrival.saturating_sub(clock::now()).div_ceil(1_000_000) as c_int,
        };
        let mut entry = libc::pollfd {
            fd: self.from,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry.
        unsafe { libc::poll(&raw mut entry, 1, timeout) > 0 }
    }

    fn wait_for_arrival(&self) {
        if let Some((arrival, _)) = self.sent.front() {
            super::sleep(arrival.saturating_sub(clock::now()));
        }
    }

    /// Takes a message onto the wire.
    fn read(&mut self) {
        let mut message = vec![0; MESSAGE];
        // SAFETY: so much room is there.
        let read = unsafe { libc::read(self.from, message.as_mut_ptr().cast(), MESSAGE) };
        message.truncate(read.max(0) as usize);
        let last = self.sent.back().map_or(0, |(arrival, _)| *arrival);
        let arrival = clock::now() + with(|net| net.delay());
        self.sent.push_back((arrival.max(last), message)); // In order.
    }

    /// Hands a message over. Returns whether the wire goes on.
    fn deliver(&self, message: &[u8]) -> bool {
        let [from, to] = self.nodes;
        let whole = wait_for_link(from, to, PATIENCE);
        if !whole {
            // SAFETY: no pointers.
            unsafe { libc::shutdown(self.from, libc::SHUT_RDWR) };
        }
        let mut rest = if whole { message } else { &[] };
        while !rest.is_empty() {
            let (place, size) = (rest.as_ptr().cast(), rest.len());
            // SAFETY: so many bytes are there.
            let sent = unsafe { libc::send(self.to, place, size, libc::MSG_NOSIGNAL) };
            if sent <= 0 {
                // The receiver has gone: the sender learns of it.
                // SAFETY: no pointers.
                unsafe { libc::shutdown(self.from, libc::SHUT_RDWR) };
                return false;
            }
            rest = &rest[sent as usize..];
        }
        if !message.is_empty() && whole {
            return true;
        }
        // SAFETY: no pointers.
        unsafe { libc::shutdown(self.to, libc::SHUT_WR) };
        false
    }
}
