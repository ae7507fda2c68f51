//! The handshake of TCP: from `connect` to the listener's queue, and back.

use super::address::{self, Address};
use super::socket::{Kind, State};
use super::{Network, wire};
use crate::{clock, world};
use core::ffi::c_int;
use pirn_rt::sys::{Errno, SysResult, call};

/// After six attempts of Linux (`tcp_syn_retries`).
const PATIENCE: u64 = 127_000_000_000;
/// The pause after the first attempt.
const PAUSE: u64 = 1_000_000_000;
/// Until the router says that there is no such host.
const NO_HOST: u64 = 3_000_000_000;

/// A connection that is being made.
#[derive(Clone, Copy)]
struct Attempt {
    client: u32,
    local: Address,
    to: Address,
    nodes: [u32; 2],
    began: u64,
    /// Until the next attempt, if this one has no answer.
    pause: u64,
}

impl Network {
    /// Begins to connect a socket.
    pub(super) fn begin_connecting(&mut self, fd: c_int, to: Address) -> SysResult {
        let Some(id) = self.sockets.id(fd) else {
            return Err(Errno(libc::EBADF));
        };
        let to = to.as_destination();
        let socket = self.sockets.get(id);
        let (node, near) = (socket.node, socket.other);
        let there = to.node(node, self.nodes.len());
        if there.is_none() && !to.is_inside() {
            world::refused("connect: no address of the simulation");
            return Err(Errno(libc::ENETUNREACH));
        }
        let local = self.complete(id, to)?;
        // Until the connection is there, the program must not find the socket ready.
        fill(fd);
        self.sockets.get_mut(id).state = State::Connecting;
        match there {
            None => self.after(NO_HOST, move |net| {
                net.connect_failed(id, near, libc::EHOSTUNREACH);
            }),
            Some(there) => self.attempt(Attempt {
                client: id,
                local,
                to,
                nodes: [node, there],
                began: clock::now(),
                pause: PAUSE,
            }),
        }
        Err(Errno(libc::EINPROGRESS))
    }

    /// Sends the first message.
    fn attempt(&mut self, attempt: Attempt) {
        let [from, to] = attempt.nodes;
        let delay = self.delay(from, to, 0);
        self.after(delay, move |net| net.arrived(attempt));
    }

    /// Tries again later, or gives up.
    fn attempt_again(&mut self, mut attempt: Attempt) {
        let next = attempt.pause;
        attempt.pause *= 2;
        let left = (attempt.began + PATIENCE).saturating_sub(clock::now());
        if left <= next {
            let near = self.sockets.get(attempt.client).other;
            return self.after(left, move |net| {
                net.connect_failed(attempt.client, near, libc::ETIMEDOUT);
            });
        }
        self.after(next, move |net| net.attempt(attempt));
    }

    /// The first message has arrived.
    fn arrived(&mut self, attempt: Attempt) {
        let Attempt { client, to, .. } = attempt;
        let [here, there] = attempt.nodes;
        let socket = self.sockets.get(client);
        if socket.descriptors.is_empty() {
            return; // Closed meanwhile, with its pair.
        }
        let near = socket.other;
        if !self.gets_through(here, there) {
            return self.attempt_again(attempt);
        }
        let listener = self.listener(there, to);
        let refused = |net: &mut Network| {
            let delay = net.delay(there, here, 0);
            net.after(delay, move |net| match net.gets_through(there, here) {
                true => net.connect_failed(client, near, libc::ECONNREFUSED),
                false => net.attempt_again(attempt),
            });
        };
        let Some((listener, name)) = listener else {
            return refused(self);
        };
        match enter(&name) {
            // The queue is full: the kernel drops the message.
            Err(Errno(libc::EAGAIN)) => self.attempt_again(attempt),
            Err(_) => refused(self),
            Ok(far) => {
                let wire = self.lay([near, far], attempt.nodes, client);
                let socket = self.sockets.get_mut(client);
                (socket.other, socket.end) = (-1, Some((wire, 0)));
                self.sockets
                    .get_mut(listener)
                    .pending
                    .push_back((attempt.local, to, wire));
                self.answer(attempt, wire);
            }
        }
    }

    /// Sends the answer.
    fn answer(&mut self, attempt: Attempt, wire: usize) {
        let [here, there] = attempt.nodes;
        let delay = self.delay(there, here, 0);
        self.begins_at(wire, clock::now() + delay);
        self.after(delay, move |net| {
            if net.gets_through(there, here) {
                return net.connected(attempt, wire);
            }
            if clock::now() >= attempt.began + PATIENCE {
                return net.give_up(attempt.client, wire);
            }
            net.after(PAUSE, move |net| net.answer(attempt, wire));
        });
    }

    fn connected(&mut self, attempt: Attempt, wire: usize) {
        let socket = self.sockets.get_mut(attempt.client);
        if socket.state == State::Connecting {
            (socket.state, socket.peer) = (State::Connected, Some(attempt.to));
        }
        self.made(wire);
    }

    fn give_up(&mut self, client: u32, wire: usize) {
        let socket = self.sockets.get_mut(client);
        (socket.state, socket.error, socket.end) = (State::New, libc::ETIMEDOUT, None);
        self.break_end(wire, 0, 0);
    }

    /// Ends an attempt: the program finds the socket ready, and is told.
    fn connect_failed(&mut self, client: u32, near: c_int, error: c_int) {
        let socket = self.sockets.get_mut(client);
        if socket.other == near && socket.state == State::Connecting {
            (socket.state, socket.error, socket.other) = (State::New, error, -1);
            wire::drain(near);
            wire::close(near);
        }
    }

    /// Returns the listener at an address on a node, and the name of its Unix socket.
    fn listener(&mut self, node: u32, to: Address) -> Option<(u32, Vec<u8>)> {
        let found = self.sockets.bound(Kind::Stream, node, to, |socket| {
            (!socket.name.is_empty()).then_some(u32::from(!socket.local().is_any()))
        });
        // Several share a port by `SO_REUSEPORT`.
        let chosen = match found.len() {
            0 => return None,
            1 => found[0],
            count => found[self.drawn_below(count)],
        };
        Some((chosen, self.sockets.get(chosen).name.clone()))
    }
}

/// Connects a new Unix socket to a listener's. Returns it.
fn enter(name: &[u8]) -> Result<c_int, Errno> {
    let (address, length) = address::of_unix(name);
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: a complete address; otherwise no pointers.
    unsafe {
        let far = call!(libc::SYS_socket, libc::AF_UNIX, kind, 0)? as c_int;
        match call!(libc::SYS_connect, far, &raw const address, length) {
            Ok(_) => Ok(far),
            Err(error) => {
                wire::close(far);
                Err(error)
            }
        }
    }
}

/// Sets the size of a socket's buffer for sending.
fn set_room(fd: c_int, bytes: c_int) {
    let (place, size) = (&raw const bytes, size_of::<c_int>());
    let (level, option) = (libc::SOL_SOCKET, libc::SO_SNDBUF);
    // SAFETY: the option is an int.
    let _ = unsafe { call!(libc::SYS_setsockopt, fd, level, option, place, size) };
}

/// Fills the way from a socket to its other end, which is made as short as the kernel allows.
fn fill(fd: c_int) {
    set_room(fd, 1);
    while wire::send(fd, &[0]).is_ok() {}
}

/// Makes the way as long as it was, and empty.
pub(super) fn unfill(fd: c_int, near: c_int) {
    /// Twice that is the kernel's own.
    const ROOM: c_int = 106_496;
    set_room(fd, ROOM);
    wire::drain(near);
}
