//! The wire of a connection: what is under way in each direction, and how a connection breaks.

use super::events::ends;
use super::{Network, connect, options};
use crate::clock;
use core::ffi::c_int;
use libc::epoll_event;
use pirn_rt::sys::{self, Errno, SysResult, call};
use std::collections::VecDeque;

/// How many bytes are on their way at most, as TCP's window would allow.
const WINDOW: usize = 64 << 10;
/// The most bytes of one message.
pub(super) const MESSAGE: usize = 16 << 10;
/// How long a connection lives while nothing gets through (`tcp_retries2`: 15 attempts).
const PATIENCE: u64 = 924_000_000_000;
/// The pauses between attempts.
const FIRST_PAUSE: u64 = 200_000_000;
const LONGEST_PAUSE: u64 = 60_000_000_000;

/// A connection. Its first end is the client's.
pub(super) struct Wire {
    ends: [End; 2],
}

/// An end, and the direction from it to the other one.
struct End {
    /// The network's end of the pair; negative: it is closed.
    fd: c_int,
    node: u32,
    /// The program's socket, from when it is accepted on.
    socket: Option<u32>,
    /// The messages under way, and when each arrives.
    way: VecDeque<(u64, Message)>,
    /// Whether there is an event for the first of them, or for its next attempt.
    is_expected: bool,
    /// When the last message arrives.
    last: u64,
    /// The bytes under way.
    under_way: usize,
    /// Bytes that have arrived, while no acknowledgement gets back.
    unacknowledged: usize,
    /// Since when nothing gets through.
    stalled: Option<u64>,
    pause: u64,
    /// Nothing more comes from this end.
    has_ended: bool,
    /// The window was full when the end was read.
    is_behind: bool,
    /// Its machine has vanished.
    has_vanished: bool,
    /// Its close is a reset.
    aborts: bool,
    /// What the program is told once.
    error: c_int,
}

enum Message {
    /// Bytes, of which some may have been handed over.
    Bytes(Vec<u8>, usize),
    End,
    Reset,
}

impl End {
    fn new(fd: c_int, node: u32) -> End {
        End {
            fd,
            node,
            socket: None,
            way: VecDeque::new(),
            is_expected: false,
            last: 0,
            under_way: 0,
            unacknowledged: 0,
            stalled: None,
            pause: FIRST_PAUSE,
            has_ended: false,
            is_behind: false,
            has_vanished: false,
            aborts: false,
            error: 0,
        }
    }

    /// Closes it, whatever is left: the program's socket is at its end, without an error.
    fn close(&mut self) {
        let fd = core::mem::replace(&mut self.fd, -1);
        self.has_ended = true;
        if fd >= 0 {
            // SAFETY: no pointers.
            let _ = unsafe { call!(libc::SYS_shutdown, fd, libc::SHUT_RDWR) };
            drain(fd);
            close(fd);
        }
    }
}

/// Closes a descriptor of the network's own, for which no thread waits.
pub(super) fn close(fd: c_int) {
    // SAFETY: no pointers; it is the network's.
    let _ = unsafe { call!(libc::SYS_close, fd) };
}

/// Takes out what can be read: the kernel makes a reset of what is not read before a close.
pub(super) fn drain(fd: c_int) {
    let mut bytes = [0; 512];
    while receive(fd, &mut bytes).is_ok_and(|it| it > 0) {}
}

fn receive(fd: c_int, to: &mut [u8]) -> SysResult {
    let (place, size) = (to.as_mut_ptr(), to.len());
    // SAFETY: so much room is there.
    unsafe {
        call!(
            libc::SYS_recvfrom,
            fd,
            place,
            size,
            libc::MSG_DONTWAIT,
            0,
            0
        )
    }
}

/// Sends as many of these bytes as there is room for.
pub(super) fn send(fd: c_int, bytes: &[u8]) -> SysResult {
    let (place, size) = (bytes.as_ptr(), bytes.len());
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: so many bytes are there.
    unsafe { call!(libc::SYS_sendto, fd, place, size, flags, 0, 0) }
}

impl Network {
    /// Lays a wire between two ends, on these nodes. The client learns of it at a time: no message
    /// of the server's comes before. Returns its number.
    pub(super) fn lay(&mut self, fds: [c_int; 2], nodes: [u32; 2], client: u32) -> usize {
        let [mut near, far] = [0, 1].map(|side| End::new(fds[side], nodes[side]));
        near.socket = Some(client);
        self.wires.push(Wire { ends: [near, far] });
        let wire = self.wires.len() - 1;
        ends::add(fds[1], key(wire, 1));
        wire
    }

    /// Sets when the client learns of the connection.
    pub(super) fn begins_at(&mut self, wire: usize, at: u64) {
        self.wires[wire].ends[1].last = at;
    }

    /// Begins to look at the client's end: the connection is made.
    pub(super) fn made(&mut self, wire: usize) {
        let End { fd, socket, .. } = *self.end(wire, 0);
        if fd < 0 {
            return;
        }
        let socket = socket.map(|it| self.sockets.get(it));
        if let Some(own) = socket.and_then(|it| it.descriptors.first()) {
            connect::unfill(*own, fd);
        }
        ends::add(fd, key(wire, 0));
    }

    /// Notes which socket of the program's is at the server's end.
    pub(super) fn accepted_at(&mut self, wire: usize, socket: u32) {
        self.end(wire, 1).socket = Some(socket);
    }

    fn end(&mut self, wire: usize, side: usize) -> &mut End {
        &mut self.wires[wire].ends[side]
    }

    /// Returns the error that an end has not told the program, once.
    pub(super) fn take_error(&mut self, wire: usize, side: usize) -> c_int {
        core::mem::take(&mut self.end(wire, side).error)
    }

    /// Makes the close of an end a reset.
    pub(super) fn aborts(&mut self, wire: usize, side: usize) {
        self.end(wire, side).aborts = true;
    }

    /// Looks at the ends that have had events. Returns whether the runtime's descriptors have some.
    pub(super) fn look_at_ends(&mut self) -> bool {
        let mut news = false;
        let mut events = [epoll_event { events: 0, u64: 0 }; 64];
        loop {
            let count = ends::take(&mut events);
            for event in &events[..count] {
                if event.u64 == ends::RUNTIMES {
                    news = true;
                    continue;
                }
                let (wire, side) = ((event.u64 >> 1) as usize, (event.u64 & 1) as usize);
                let seen = event.events as c_int;
                if wire >= self.wires.len() || self.end(wire, side).fd < 0 {
                    continue;
                }
                if seen & libc::EPOLLOUT != 0 {
                    self.carry(wire, 1 - side);
                }
                self.read(wire, side, seen & (libc::EPOLLHUP | libc::EPOLLRDHUP) != 0);
            }
            if count < events.len() {
                return news;
            }
        }
    }

    /// Takes what can be read at an end onto the wire, as far as the window allows. `to_end`: there
    /// may be more than bytes.
    fn read(&mut self, wire: usize, side: usize, to_end: bool) {
        loop {
            let end = &mut self.wires[wire].ends[side];
            if end.has_ended || end.fd < 0 {
                return;
            }
            if end.under_way >= WINDOW {
                end.is_behind = true;
                return;
            }
            let bytes = &mut self.buffer;
            match receive(end.fd, &mut bytes[..]) {
                Ok(0) if end.aborts => return self.abort(wire, side),
                Ok(0) => {
                    end.has_ended = true;
                    return self.put(wire, side, Message::End);
                }
                Ok(read) => {
                    end.under_way += read;
                    let bytes = bytes[..read].to_vec();
                    self.put(wire, side, Message::Bytes(bytes, 0));
                    if read < MESSAGE && !to_end {
                        return;
                    }
                }
                Err(Errno(libc::EAGAIN)) => return,
                // The program has closed it with something unread.
                Err(_) => return self.abort(wire, side),
            }
        }
    }

    fn abort(&mut self, wire: usize, side: usize) {
        self.end(wire, side).close();
        self.put(wire, side, Message::Reset);
    }

    /// Puts a message onto the wire, in order.
    fn put(&mut self, wire: usize, side: usize, message: Message) {
        let [from, to] = [side, 1 - side].map(|it| self.wires[wire].ends[it].node);
        let size = match &message {
            Message::Bytes(bytes, _) => bytes.len(),
            _ => 0,
        };
        let delay = self.delay(from, to, size);
        let end = self.end(wire, side);
        end.last = end.last.max(clock::now() + delay);
        end.way.push_back((end.last, message));
        self.expect(wire, side);
    }

    /// Has the first message of a direction handed over when it arrives.
    fn expect(&mut self, wire: usize, side: usize) {
        let end = self.end(wire, side);
        if let Some(&(arrival, _)) = end.way.front()
            && !end.is_expected
        {
            end.is_expected = true;
            self.at(arrival, move |net| {
                net.end(wire, side).is_expected = false;
                net.carry(wire, side);
            });
        }
    }

    /// Hands over the messages of a direction that have arrived.
    fn carry(&mut self, wire: usize, side: usize) {
        loop {
            let [from, to] = [side, 1 - side].map(|it| self.wires[wire].ends[it].node);
            let other = &self.wires[wire].ends[1 - side];
            let (vanished, gone) = (other.has_vanished, other.fd < 0);
            match self.end(wire, side).way.front() {
                Some(&(arrival, _)) if arrival <= clock::now() => {}
                _ => return self.expect(wire, side),
            }
            let through = self.gets_through(from, to);
            if !through || vanished && self.nodes[to as usize].is_down {
                return self.stall(wire, side);
            }
            if gone {
                return self.refuse(wire, side);
            }
            if !self.hand_over(wire, side) {
                return;
            }
        }
    }

    /// Answers messages to an end that is not there any more.
    fn refuse(&mut self, wire: usize, side: usize) {
        let end = self.end(wire, side);
        let answers = !end.way.iter().any(|(_, it)| matches!(it, Message::Reset)) && end.fd >= 0;
        end.way.clear();
        if answers {
            self.put(wire, 1 - side, Message::Reset);
        }
    }

    /// Tries again later, and gives up at some time.
    fn stall(&mut self, wire: usize, side: usize) {
        let socket = self.end(wire, side).socket;
        let patience = match self.option(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) {
            0 => PATIENCE,
            millis => millis as u64 * 1_000_000,
        };
        let end = self.end(wire, side);
        let since = *end.stalled.get_or_insert(clock::now());
        if clock::now() >= since + patience {
            end.way.clear();
            return self.break_end(wire, side, libc::ETIMEDOUT);
        }
        if end.is_expected {
            return;
        }
        let pause = end.pause.min(since + patience - clock::now());
        end.pause = (end.pause * 2).min(LONGEST_PAUSE);
        end.is_expected = true;
        self.after(pause, move |net| {
            net.end(wire, side).is_expected = false;
            net.carry(wire, side);
        });
    }

    /// Hands over the first message of a direction. Returns whether it is done.
    fn hand_over(&mut self, wire: usize, side: usize) -> bool {
        let fd = self.end(wire, 1 - side).fd;
        let end = self.end(wire, side);
        let Some((_, message)) = end.way.front_mut() else {
            return false;
        };
        match message {
            Message::Bytes(bytes, done) => match send(fd, &bytes[*done..]) {
                Ok(sent) if *done + sent < bytes.len() => {
                    *done += sent;
                    ends::wants_room(fd, key(wire, 1 - side), true);
                    return false;
                }
                Err(Errno(libc::EAGAIN)) => {
                    ends::wants_room(fd, key(wire, 1 - side), true);
                    return false;
                }
                // It has been closed: the sender is told. Otherwise the receiver has only said that
                // it reads no more, of which the sender is not told.
                Err(_) if sys::events_now(fd, 0) & libc::POLLHUP != 0 => {
                    self.end(wire, 1 - side).close();
                    self.refuse(wire, side);
                    return false;
                }
                _ => {
                    let size = bytes.len();
                    end.way.pop_front();
                    return self.acknowledge(wire, side, size);
                }
            },
            Message::End => {
                end.way.pop_front();
                // SAFETY: no pointers.
                let _ = unsafe { call!(libc::SYS_shutdown, fd, libc::SHUT_WR) };
                let other = self.end(wire, 1 - side);
                if other.has_ended && other.way.is_empty() {
                    other.close();
                    self.end(wire, side).close();
                }
            }
            Message::Reset => {
                end.way.clear();
                self.break_end(wire, 1 - side, libc::ECONNRESET);
                return false;
            }
        }
        true
    }

    /// Lets the window go on, if the acknowledgement gets back. Returns whether the direction goes
    /// on.
    fn acknowledge(&mut self, wire: usize, side: usize, size: usize) -> bool {
        let [from, to] = [side, 1 - side].map(|it| self.wires[wire].ends[it].node);
        self.end(wire, side).unacknowledged += size;
        if self.gets_through(to, from) {
            let end = self.end(wire, side);
            end.under_way -= core::mem::take(&mut end.unacknowledged);
            (end.stalled, end.pause) = (None, FIRST_PAUSE);
            if core::mem::take(&mut end.is_behind) {
                self.read(wire, side, true);
            }
        } else if self.end(wire, side).way.is_empty() {
            // The same bytes again, which the receiver has already.
            let again = (clock::now(), Message::Bytes(Vec::new(), 0));
            self.end(wire, side).way.push_back(again);
            self.stall(wire, side);
            return false;
        }
        true
    }

    /// Breaks an end: the program is told once, after what it can still read.
    pub(super) fn break_end(&mut self, wire: usize, side: usize, error: c_int) {
        let end = self.end(wire, side);
        if end.fd >= 0 {
            end.error = error;
            end.way.clear();
            end.close();
        }
    }

    /// Breaks the connections between two nodes.
    pub(super) fn reset_between(&mut self, one: u32, other: u32) {
        for wire in 0..self.wires.len() {
            let nodes = [0, 1].map(|side| self.wires[wire].ends[side].node);
            if nodes == [one, other] || nodes == [other, one] {
                for side in [0, 1] {
                    self.break_end(wire, side, libc::ECONNRESET);
                }
            }
        }
    }

    /// Makes the connections of a node half open.
    pub(super) fn vanish_from_wires(&mut self, node: u32) {
        for wire in 0..self.wires.len() {
            for side in [0, 1] {
                let end = self.end(wire, side);
                if end.node != node || end.fd < 0 {
                    continue;
                }
                end.has_vanished = true;
                end.close();
                self.keep_alive(wire, 1 - side);
            }
        }
    }

    /// Ends a connection whose peer has vanished when the probes have had no answer.
    fn keep_alive(&mut self, wire: usize, side: usize) {
        let socket = self.end(wire, side).socket;
        if self.option(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE) == 0 {
            return;
        }
        let seconds = |option| u64::from(self.option(socket, libc::IPPROTO_TCP, option) as u32);
        let [idle, pause, count] =
            [libc::TCP_KEEPIDLE, libc::TCP_KEEPINTVL, libc::TCP_KEEPCNT].map(seconds);
        self.after((idle + pause * count) * 1_000_000_000, move |net| {
            let other = net.end(wire, 1 - side).node;
            let error = match net.nodes[other as usize].is_down {
                true => libc::ETIMEDOUT,
                false => libc::ECONNRESET,
            };
            net.break_end(wire, side, error);
        });
    }

    /// Returns an option of a socket.
    fn option(&self, socket: Option<u32>, level: c_int, option: c_int) -> c_int {
        match socket {
            Some(socket) => self.sockets.get(socket).options.int(level, option),
            None => options::default(level, option),
        }
    }

    /// Closes all ends.
    pub(super) fn close_wires(&mut self) {
        let ends = self.wires.iter_mut().flat_map(|it| &mut it.ends);
        ends.filter(|it| it.fd >= 0).for_each(|it| close(it.fd));
    }
}

/// Returns the key of an end in the kernel's list.
fn key(wire: usize, side: usize) -> u64 {
    (wire as u64) << 1 | side as u64
}
