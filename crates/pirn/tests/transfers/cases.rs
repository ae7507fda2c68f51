//! Combinations of calls, descriptors, options, and what happens meanwhile.

use std::time::Duration;

use crate::common::{Rng, sys};
use crate::kinds::{Kind, OTHERS, Pair, SOCKETS};
use crate::receives::{self, Receive};
use crate::script::{self, Outcome, Step, hangs, perform};
use crate::sends::{self, How};
use Step::{Close, End, Fill, Pass, Reset, Shut, Signal, Take, Urgent};

#[derive(Clone, Copy, Debug)]
pub enum Call {
    Receive(Receive),
    Send(How),
}

/// A call, and what happens meanwhile.
#[derive(Clone, Debug)]
pub struct Case {
    kind: Kind,
    call: Call,
    size: usize,
    low_water: i32,
    /// `SO_RCVTIMEO` or `SO_SNDTIMEO`, in milliseconds.
    limit: i64,
    nonblocking: bool,
    /// How many of the steps come before the call.
    before: usize,
    steps: Vec<Step>,
}

const LONG: i64 = 100_000;

/// What a peer may do while this side receives.
fn while_receiving(kind: Kind, limit: i64) -> Vec<(usize, Vec<Step>)> {
    let send = Step::Send;
    if kind == Kind::File {
        return vec![
            (0, vec![End]),
            (1, vec![send(4), End]),
            (2, vec![send(4), send(4), End]),
        ];
    }
    if limit > 0 && limit < LONG {
        return vec![(1, vec![send(4), End, Close]), (0, vec![End, Close])];
    }
    let end = match kind {
        Kind::Udp | Kind::UnixDatagram => Shut,
        Kind::Event | Kind::Timer => send(9),
        _ => Close,
    };
    let mut all = vec![
        (0, vec![end]),
        (1, vec![send(4), end]),
        (2, vec![send(4), end]),
        (2, vec![send(4), send(4), end]),
        (1, vec![send(4), send(4), end]),
        (0, vec![send(3), send(4), end]),
        (1, vec![send(4), Signal(true), send(4), end]),
        (1, vec![send(4), Signal(false), send(4), end]),
    ];
    if matches!(kind, Kind::Tcp | Kind::Unix | Kind::Seqpacket) {
        all.extend([(1, vec![send(4), Shut]), (0, vec![Shut])]);
        all.extend([(1, vec![send(4), Reset]), (2, vec![send(4), Reset])]);
        all.push((0, vec![Reset]));
    }
    if kind.is_unix() {
        all.extend([(1, vec![Pass(1), end]), (0, vec![Pass(2), end])]);
        all.push((2, vec![Pass(3), send(4), end]));
        all.push((1, vec![send(3), Pass(1), Pass(2), send(4), end]));
        all.push((0, vec![Pass(1), send(4), Pass(12), end]));
    }
    if matches!(kind, Kind::Tcp | Kind::Unix) {
        all.push((1, vec![Urgent, send(4), end]));
        all.push((1, vec![send(4), Urgent, send(4), end]));
        all.push((3, vec![send(4), Urgent, send(4), end]));
    }
    all
}

/// What a peer may do while this side sends.
fn while_sending(kind: Kind, limit: i64) -> Vec<(usize, Vec<Step>)> {
    const ALL: usize = usize::MAX;
    if kind == Kind::File {
        return vec![(0, vec![End])];
    }
    if limit > 0 && limit < LONG {
        return vec![(0, vec![End]), (1, vec![Fill, End])];
    }
    let mut all = vec![
        (0, vec![Take(ALL)]),
        (1, vec![Fill, Take(ALL)]),
        (0, vec![Signal(true), Take(ALL)]),
    ];
    if !matches!(kind, Kind::Event | Kind::Timer) {
        all.extend([(1, vec![Close]), (0, vec![Close]), (1, vec![Fill, Close])]);
        all.push((0, vec![Take(1000), Close]));
    }
    if kind.is_socket() && kind != Kind::Udp {
        all.extend([(1, vec![Shut]), (0, vec![Shut]), (1, vec![Fill, Shut])]);
    }
    if matches!(kind, Kind::Tcp | Kind::Unix) {
        all.extend([(1, vec![Reset]), (0, vec![Reset]), (1, vec![Fill, Reset])]);
    }
    all
}

/// Returns `count` cases, the same for the same seed.
pub fn some(count: usize, seed: u64) -> Vec<Case> {
    let mut rng = Rng::new(seed);
    let mut pick = |length: usize| rng.below(length as u64) as usize;
    let (receives, sends) = (receives::all(), sends::all());
    let mut cases = vec![];
    while cases.len() < count {
        let kind = match pick(3) {
            0 => OTHERS[pick(OTHERS.len())],
            1 => [Kind::Tcp, Kind::Unix][pick(2)],
            _ => SOCKETS[pick(SOCKETS.len())],
        };
        let limit = match kind.is_socket() {
            true => [0, 0, 0, 40, LONG][pick(5)],
            false => 0,
        };
        let (call, size, scripts) = if pick(3) > 0 {
            // The first few are not only for sockets.
            let call = receives[pick(if kind.is_socket() { receives.len() } else { 8 })];
            let size = match kind {
                // The kernel's then ends with whatever comes, without a look at it.
                Kind::Tcp => [1, 6, 6, 8, 64][pick(5)],
                _ => [0, 1, 6, 6, 8, 64][pick(6)],
            };
            (Call::Receive(call), size, while_receiving(kind, limit))
        } else {
            let call = sends[pick(if kind.is_socket() { sends.len() } else { 11 })];
            let size = match kind {
                Kind::Event | Kind::Timer => [0, 8][pick(2)],
                Kind::Udp | Kind::UnixDatagram | Kind::Seqpacket => [0, 10][pick(2)],
                _ => [0, 10, 300_000][pick(3)],
            };
            (Call::Send(call), size, while_sending(kind, limit))
        };
        let (before, steps) = scripts[pick(scripts.len())].clone();
        let low_water = [1, 1, 5][pick(3)];
        let case = Case {
            kind,
            call,
            size,
            low_water: if kind.is_socket() { low_water } else { 1 },
            limit,
            nonblocking: pick(8) == 0,
            before,
            steps,
        };
        if !case.is_odd() {
            cases.push(case);
        }
    }
    cases
}

impl Case {
    /// Returns whether it is one of the rare differences of which `docs/limits.md` tells.
    fn is_odd(&self) -> bool {
        let signals = self.steps.iter().any(|step| matches!(step, Signal(_)));
        match self.call {
            // A signal that has ended the first message ends the second one too, which may be the
            // same as the first.
            Call::Receive(Receive::Recvmmsg(flags) | Receive::RecvmmsgFor(flags, _)) => {
                signals || flags & libc::MSG_PEEK != 0
            }
            // Waits for room for no bytes.
            Call::Send(How::Sendfile) => self.size == 0,
            // Tells of a reset, as by a peer that leaves unread bytes, or of a broken pipe.
            Call::Send(How::Splice) => {
                let may_be_reset = [Reset, Fill].iter().any(|step| self.steps.contains(step));
                self.kind.is_terminal() || self.kind == Kind::Unix && may_be_reset
            }
            // An answer from the network may come between two datagrams.
            Call::Send(How::Sendmmsg(_)) => self.kind == Kind::Udp && self.steps.contains(&Close),
            // Does not look at `SO_RCVLOWAT`, as `poll` does.
            Call::Receive(Receive::Splice) => self.kind.is_terminal() || self.low_water > 1,
            // A handler with `SA_RESTART` ends a read that has some of its bytes.
            Call::Receive(_) => signals && self.kind == Kind::Raw(5, 0),
            // A thread of its own makes a long write to a terminal, and nothing interrupts it.
            Call::Send(_) => signals && self.kind.is_terminal(),
        }
    }

    /// Makes the call in a thread that `start` starts. It gets the time `quiet` to begin to wait.
    pub fn outcome(
        &self,
        quiet: Duration,
        start: impl FnOnce(Box<dyn FnOnce() + Send>),
    ) -> Outcome {
        let receives = matches!(self.call, Call::Receive(_));
        let mut pair = Pair::new(self.kind, receives);
        self.set_options(&pair);
        let (call, fd, size) = (self.call, pair.fd(), self.size);
        let make = move || match call {
            Call::Receive(call) => call.make(fd, size),
            Call::Send(call) => call.make(fd, size),
        };
        let mut outcome = perform(
            (self.kind, &mut pair),
            (self.before, &self.steps),
            quiet,
            start,
            make,
        );
        if hangs(&outcome) {
            std::mem::forget(pair); // Its caller still waits.
        } else if receives {
            // What a terminal keeps depends on when a thread of the kernel's has passed it on.
            let rest = script::rest(&pair);
            outcome.extend(rest.iter().filter(|_| !self.kind.is_terminal()));
        } else if self.kind == Kind::File {
            outcome.extend(script::place(&pair));
        } else if !self.nonblocking && !self.kind.is_terminal() && !self.steps.contains(&End) {
            outcome.extend(script::state(&pair));
        }
        outcome
    }

    fn set_options(&self, pair: &Pair) {
        let set = |option, value: &i32| {
            sys::set_socket_option(&pair.own, libc::SOL_SOCKET, option, value);
        };
        if self.low_water > 1 {
            set(libc::SO_RCVLOWAT, &self.low_water);
        }
        if self.kind.is_socket() && matches!(self.call, Call::Send(_)) {
            set(libc::SO_SNDBUF, &16_384);
            let peer = pair.peer.as_ref().unwrap();
            // Room for whole segments, or the window opens late.
            sys::set_socket_option(peer, libc::SOL_SOCKET, libc::SO_RCVBUF, &131_072);
        }
        let zero_copies = matches!(self.call, Call::Send(how) if how.is_without_copies());
        if zero_copies && matches!(self.kind, Kind::Tcp | Kind::Udp) {
            set(libc::SO_ZEROCOPY, &1);
        }
        if self.limit > 0 {
            let time = libc::timeval {
                tv_sec: self.limit / 1000,
                tv_usec: self.limit % 1000 * 1000,
            };
            for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
                sys::set_socket_option(&pair.own, libc::SOL_SOCKET, option, &time);
            }
        }
        if self.nonblocking {
            sys::set_nonblocking(&pair.own, true);
        }
    }
}
