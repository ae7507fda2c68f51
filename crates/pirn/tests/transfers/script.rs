//! One call on a fresh descriptor, and what its peer does meanwhile.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::{patient, sys};
use crate::kinds::{self, Kind, Pair};

/// What happens to a descriptor while a call on it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The peer sends this many bytes.
    Send(usize),
    /// The peer sends a byte of urgent data.
    Urgent,
    /// The peer sends a byte, and passes this many descriptors.
    Pass(usize),
    /// The peer reads this many bytes, or all that come until the call has ended.
    Take(usize),
    /// This side sends until there is no room.
    Fill,
    Close,
    Reset,
    /// This side is shut down, for both directions.
    Shut,
    /// The caller gets a signal, whose handler has `SA_RESTART` or not.
    Signal(bool),
    /// The call ends by itself.
    End,
}

/// What a call on a descriptor has given, and what is left.
pub type Outcome = Vec<i64>;

const HANGS: i64 = i64::MIN;
/// How long a call may take that nothing holds up any more.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a thread gets to begin to wait where nothing shows it, at the first attempt.
pub const QUIET: Duration = Duration::from_millis(3);

pub fn hangs(outcome: &Outcome) -> bool {
    outcome.first() == Some(&HANGS)
}

/// The state that the caller and its peer share.
#[derive(Default)]
struct Shared {
    begun: AtomicBool,
    ended: AtomicBool,
    caller: AtomicU64,
}

/// Makes `call` on one end of a fresh pair in a thread that `start` starts, performs the steps:
/// the first `before` of them before the call. The caller gets the time `quiet` before each step to
/// begin to wait. Returns what the call gives, and what a reader finds afterwards.
pub fn perform(
    (kind, pair): (Kind, &mut Pair),
    (before, steps): (usize, &[Step]),
    quiet: Duration,
    start: impl FnOnce(Box<dyn FnOnce() + Send>),
    call: impl FnOnce() -> Outcome + Send + 'static,
) -> Outcome {
    let (first, then) = steps.split_at(before);
    let mut sent = 0;
    let shared: &'static Shared = Box::leak(Box::default());
    for step in first {
        perform_step(pair, kind, *step, &mut sent, shared);
        until_it_is_there(pair.fd(), kind, sent);
    }
    let (result, returned) = std::sync::mpsc::channel();
    start(Box::new(move || {
        // SAFETY: no arguments.
        shared.caller.store(unsafe { libc::pthread_self() }, SeqCst);
        shared.begun.store(true, SeqCst);
        let outcome = call();
        shared.ended.store(true, SeqCst);
        let _ = result.send(outcome);
    }));
    for step in then {
        until_it_waits(pair.fd(), quiet, shared);
        perform_step(pair, kind, *step, &mut sent, shared);
    }
    match returned.recv_timeout(patient(PATIENCE)) {
        Ok(outcome) => outcome,
        Err(_) => vec![HANGS],
    }
}

/// Waits until what was sent can be read: a terminal has it from a thread of the kernel's.
fn until_it_is_there(fd: i32, kind: Kind, sent: u8) {
    let begin = Instant::now();
    let is_there = || queued(fd) == Some(sent.into());
    while kind.is_terminal() && !is_there() && begin.elapsed() < 40 * QUIET {
        std::thread::sleep(QUIET);
    }
}

fn queued(fd: i32) -> Option<libc::c_int> {
    let mut queued = 0;
    // SAFETY: room for an int.
    sys::check(unsafe { libc::ioctl(fd, libc::FIONREAD, &mut queued) }).ok()?;
    Some(queued)
}

/// Waits until the caller has taken what there is and waits for more, or has ended.
fn until_it_waits(fd: i32, quiet: Duration, shared: &Shared) {
    let begin = Instant::now();
    let mut since = None;
    while !shared.ended.load(SeqCst) && begin.elapsed() < patient(PATIENCE) {
        let elapsed = since.get_or_insert_with(Instant::now).elapsed();
        if !shared.begun.load(SeqCst) {
            since = None;
        } else if elapsed > [4 * quiet, quiet][usize::from(queued(fd) == Some(0))] {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn perform_step(pair: &mut Pair, kind: Kind, step: Step, sent: &mut u8, shared: &Shared) {
    match step {
        Step::Send(count) => send(pair, kind, count, sent),
        Step::Urgent => {
            // SAFETY: one byte.
            unsafe { libc::send(pair.peer_fd(), c"!".as_ptr().cast(), 1, libc::MSG_OOB) };
        }
        Step::Pass(count) => pass(pair.peer_fd(), count),
        Step::Take(most) => take(
            pair.peer.as_ref().unwrap_or(&pair.own).as_raw_fd(),
            most,
            shared,
        ),
        Step::Fill => fill(pair, kind),
        Step::Close => drop(pair.peer.take()),
        Step::Reset => pair.peer.take().into_iter().for_each(kinds::reset),
        // SAFETY: no pointers.
        Step::Shut => drop(unsafe { libc::shutdown(pair.fd(), libc::SHUT_RDWR) }),
        Step::Signal(restarts) => {
            let signal = [libc::SIGUSR2, libc::SIGUSR1][usize::from(restarts)];
            if !shared.ended.load(SeqCst) {
                // SAFETY: the caller has not ended, or its handle is not reused so soon.
                unsafe { libc::pthread_kill(shared.caller.load(SeqCst), signal) };
            }
        }
        Step::End => {
            let begin = Instant::now();
            while !shared.ended.load(SeqCst) && begin.elapsed() < patient(PATIENCE) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Sends bytes that tell their places; lines to a cooked terminal.
fn send(pair: &Pair, kind: Kind, count: usize, sent: &mut u8) {
    let mut bytes: Vec<u8> = (0..count).map(|i| b'a' + (*sent + i as u8) % 26).collect();
    *sent += count as u8;
    match kind {
        Kind::Event => drop(sys::write(pair.fd(), &(count as u64).to_ne_bytes())),
        Kind::File => {
            let from = i64::from(*sent) - count as i64;
            // SAFETY: as many bytes.
            unsafe { libc::pwrite(pair.fd(), bytes.as_ptr().cast(), count, from) };
        }
        Kind::Timer => {
            let soon = sys::timespec(Duration::from_nanos(1));
            let never = sys::timespec(Duration::ZERO);
            let time = libc::itimerspec {
                it_interval: never,
                it_value: soon,
            };
            // SAFETY: a valid structure.
            unsafe { libc::timerfd_settime(pair.fd(), 0, &time, std::ptr::null_mut()) };
        }
        _ => {
            if kind == Kind::Cooked && count > 0 {
                bytes[count - 1] = b'\n';
            }
            drop(sys::write(pair.peer_fd(), &bytes));
            if kind.is_terminal() {
                // Has the kernel pass it on at once.
                let entry = sys::entry(pair.own.as_fd(), libc::POLLIN);
                let _ = sys::poll(&mut [entry], 0);
            }
        }
    }
}

/// Sends a byte with `count` descriptors, 12 at most.
fn pass(peer: i32, count: usize) {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    let mut byte = b"p".to_owned();
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = [0u64; 8];
    // SAFETY: all zeros is a message without anything; the header and the numbers have room.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(4 * count as u32) as _;
        let header = control.as_mut_ptr().cast::<libc::cmsghdr>();
        (*header).cmsg_len = HEADER + 4 * count;
        ((*header).cmsg_level, (*header).cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        let numbers = control.as_mut_ptr().byte_add(HEADER).cast::<i32>();
        (0..count).for_each(|i| numbers.add(i).write(peer));
        libc::sendmsg(peer, &message, 0);
    }
}

/// Sends until there is no room, and for a while none comes.
pub fn fill(pair: &Pair, kind: Kind) {
    sys::set_nonblocking(&pair.own, true);
    let nearly = (u64::MAX - 1).to_ne_bytes();
    let bytes: &[u8] = match kind {
        Kind::Event => &nearly,
        Kind::UnixDatagram | Kind::Seqpacket => &[b'f'; 64],
        _ => &[b'f'; 4096],
    };
    // What it has sent may leave room a little later. One that drops what has no room never fills.
    for _ in 0..20 {
        let sent = (0..4096).position(|_| sys::write(pair.fd(), bytes).is_err());
        if sent == Some(0) {
            break;
        }
        std::thread::sleep(QUIET);
    }
    sys::set_nonblocking(&pair.own, false);
}

/// Reads up to `most` bytes from the peer, until the call has ended and nothing is left.
fn take(peer: i32, most: usize, shared: &Shared) {
    let mut taken = 0;
    let mut buffer = [0; 4096];
    let begin = Instant::now();
    while taken < most && begin.elapsed() < patient(PATIENCE) {
        let ended = shared.ended.load(SeqCst);
        let room = buffer.len().min(most - taken);
        // SAFETY: room for as many.
        let count =
            unsafe { libc::recv(peer, buffer.as_mut_ptr().cast(), room, libc::MSG_DONTWAIT) };
        let count = match count {
            -1 if sys::errno() == libc::ENOTSOCK => take_by_reading(peer, &mut buffer[..room]),
            count => count,
        };
        match count {
            1.. => taken += count as usize,
            _ if ended => return,
            _ => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

fn take_by_reading(peer: i32, buffer: &mut [u8]) -> isize {
    let mut entry = libc::pollfd {
        fd: peer,
        events: libc::POLLIN,
        revents: 0,
    };
    match sys::poll(std::slice::from_mut(&mut entry), 0) {
        Ok(1) => sys::read(peer, buffer).map_or(-1, |count| count as isize),
        _ => -1,
    }
}

/// Returns how another send ends, and the error of the socket.
pub fn state(pair: &Pair) -> Outcome {
    sys::set_nonblocking(&pair.own, true);
    let next = sys::write(pair.fd(), b"x");
    let next = next.map_or_else(|e| -i64::from(e.raw_os_error().unwrap()), |n| n as i64);
    let (mut error, mut length): (libc::c_int, u32) = (0, 4);
    let (level, option) = (libc::SOL_SOCKET, libc::SO_ERROR);
    // SAFETY: room for an int; it is not a socket otherwise.
    unsafe {
        libc::getsockopt(
            pair.fd(),
            level,
            option,
            (&raw mut error).cast(),
            &mut length,
        )
    };
    vec![next, error.into()]
}

/// Returns the place in a file, and its length.
pub fn place(pair: &Pair) -> Outcome {
    [libc::SEEK_CUR, libc::SEEK_END]
        .map(|from| {
            // SAFETY: no pointers.
            unsafe { libc::lseek(pair.fd(), 0, from) }
        })
        .to_vec()
}

/// Returns what is left to read: results and errors, until one comes twice or there is nothing.
pub fn rest(pair: &Pair) -> Outcome {
    let mut outcome = vec![];
    sys::set_nonblocking(&pair.own, true);
    let mut buffer = [0; 256];
    for _ in 0..6 {
        let result = sys::read(pair.own.as_raw_fd(), &mut buffer);
        let entry = result.map_or_else(|e| -i64::from(e.raw_os_error().unwrap()), |n| n as i64);
        if outcome.last() == Some(&entry) {
            break;
        }
        outcome.push(entry);
    }
    outcome
}
