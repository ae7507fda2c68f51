//! The inspection server: how tools ask a running process, and which may.
//!
//! ```text
//!   tool (`pirn dump PID`)             process
//!   looks for the socket: none
//!   SIGURG with a marker, to the
//!   monitor's thread               ->  handler: wakes the starter
//!                                      starter: starts the listener's thread
//!                                      listener: its own table of descriptors, the socket
//!   finds the socket, connects,
//!   checks which process listens   ->  listener: checks the user, starts a worker
//!   one line: the request          ->  worker: the command's answer, then it hangs up
//! ```
//!
//! A process prepares nothing. Until a tool asks, the server is one thread that sleeps (the
//! starter), without a descriptor or a file. A listener that a tool has asked for ends when no
//! client has come for a minute.
//!
//! **The server's threads have their own table of descriptors** (`CLOSE_RANGE_UNSHARE`), which the
//! runtime's table of descriptors ignores. So they use `std`, and they work when the process has
//! run out of descriptors; the process's children inherit nothing, by `fork` or by `exec`; a
//! program that closes all descriptors does not close the socket; and the program gets the same
//! numbers as without tools.
//!
//! **Who may ask**: processes of the same user and of root, by the kernel's word (`SO_PEERCRED`);
//! only root where the process is not dumpable, because it has changed its user or keeps secrets.
//! The socket is in a folder that only its owner may enter ([`socket`]). A program with privileges
//! that its user lacks (setuid) does not listen.
//!
//! **No thread of the program waits**: each client has a worker, a platform thread with all signals
//! blocked; there are [`CLIENTS`](listener::CLIENTS) at most. A request has to come soon, a client
//! that does not read is dropped, and answers have a time limit, unless they are streams.
//!
//! # The starter
//!
//! **The monitor must not start a thread.** Starting one takes memory of `malloc`, and so perhaps
//! the lock of an arena. A thread of the program that has stopped for good with that lock would
//! stop the monitor, and with it preemption, spare carriers and late timers. The starter may stop:
//! then tools get no answer, as they would not if the listener stopped.
//!
//! Other ways would be worse:
//! * The reporter of the diagnostics is there anyway, but allocates far more when a carrier is
//!   stuck: just then an operator looks inside.
//! * A thread that the monitor makes by a bare `clone`, on memory that was set aside, needs a TLS
//!   block to call `pthread_create`, and is on none of glibc's lists: `setuid` would not reach it,
//!   and the threads that it starts would keep the rights that the program has given up.
//! * The listener itself, started early, has its own table of descriptors, which its children
//!   inherit: the dump for `SIGQUIT` would not reach standard error.

mod commands;
mod listener;
mod socket;

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::AcqRel, Ordering::Relaxed};
use pirn_rt::environment;
use pirn_rt::sanitizer::valgrind;
use pirn_rt::sched::deferred;
use pirn_rt::sys::{self, Errno, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::start_helper;
use std::io;
use std::time::Duration;

/// Whether tools may look inside this process.
static ALLOWED: AtomicBool = AtomicBool::new(false);
/// Whether it listens from the start.
static FOR_GOOD: AtomicBool = AtomicBool::new(false);
/// A listener starts. It may be blocked, as the starter may be, and tools ask again and again.
static STARTING: Permits = Permits::new(1);
/// A dump for `SIGQUIT` is being written.
static QUITTING: Permits = Permits::new(1);

/// Decides whether tools may look inside, by the setting and by the program's privileges. Starts
/// the starter. For the start of the runtime.
pub fn allow(setting: Option<bool>) -> bool {
    /// Bytes of its stack: it only starts threads.
    const STACK: usize = 64 << 10;
    let allowed = setting != Some(false) && environment::is_trusted();
    let starter = || {
        loop {
            let requests = deferred::next();
            if requests & deferred::LISTEN != 0 {
                listen();
            }
            if requests & deferred::DUMP != 0 {
                dump_for_quit();
            }
        }
    };
    if let Err(error) = start_thread("pirn-server", STACK, starter) {
        environment::notice(&format!("no thread to answer tools with: {error}"));
    }
    ALLOWED.store(allowed, Relaxed); // Relaxed: publishes no other data.
    allowed
}

/// Forgets the parent's listener and its clients.
///
/// # Safety
/// In the child of a fork that has no runtime yet.
pub unsafe fn after_fork() {
    STARTING.reset();
    QUITTING.reset();
    listener::after_fork();
    commands::after_fork();
    // SAFETY: the caller's contract.
    unsafe { socket::after_fork() };
}

/// Listens until the process ends, if that is allowed.
pub fn open_for_good() {
    FOR_GOOD.store(true, Relaxed); // Relaxed: publishes no other data.
    listen();
}

/// Starts a listener. It ends at once if another one answers.
fn listen() {
    // Relaxed: each is a decision of the start, which carries no other data.
    let (allowed, for_good) = (ALLOWED.load(Relaxed), FOR_GOOD.load(Relaxed));
    let Some(permit) = allowed.then(|| STARTING.take()).flatten() else {
        return;
    };
    let run = move || listener::run(for_good, permit);
    if let Err(error) = start_thread("pirn-observe", STACK, run) {
        environment::notice(&format!("no thread to answer tools with: {error}"));
    }
}

/// Starts a thread that writes a dump to standard error, unless one is being written.
fn dump_for_quit() {
    let Some(permit) = QUITTING.take() else {
        return;
    };
    let started = start_thread("pirn-dump", STACK, move || {
        let _permit = permit;
        // Finding the names takes a second or so.
        sys::complain(&[
            "pirn: SIGQUIT: a dump follows; another one within 2 s ends the process\n",
        ]);
        write_to_stderr(crate::dump::take().to_string().as_bytes());
    });
    if let Err(error) = started {
        sys::complain(&["pirn: no thread for the dump: ", &error.to_string(), "\n"]);
    }
}

/// Writes to standard error, which may be a pipe that does not block; gives up after 5 s without
/// progress.
fn write_to_stderr(mut bytes: &[u8]) {
    const PATIENCE_NS: u64 = 5_000_000_000;
    let mut deadline = Deadline::after_nanos(PATIENCE_NS);
    while !bytes.is_empty() && !deadline.has_passed() {
        // SAFETY: the bytes are readable for their length.
        match unsafe { call!(libc::SYS_write, 2, bytes.as_ptr(), bytes.len()) } {
            Ok(written) => {
                bytes = &bytes[written..];
                deadline = Deadline::after_nanos(PATIENCE_NS);
            }
            Err(Errno(libc::EAGAIN)) => sys::nap(10_000_000),
            Err(Errno(libc::EINTR)) => {}
            Err(_) => return,
        }
    }
}

/// Bytes of a thread's stack, for unwinding and symbols: address space, of which a thread that
/// only waits uses two pages.
const STACK: usize = 512 << 10;

/// Starts a platform thread on which no handler of the program runs.
///
/// # Errors
/// There is no memory, or the system refuses another thread.
fn start_thread(name: &str, stack: usize, f: impl FnOnce() + Send + 'static) -> io::Result<()> {
    /// The process would end if there were no memory for the thread's record, so the allocator must
    /// have this much beside the stack.
    const RECORD: usize = 64 << 10;
    /// All signals but the two that the C library sends to each thread, and waits for: 32 and 33.
    const ALL_SIGNALS: u64 = !(0b11 << 31);
    environment::probe_allocator(stack + RECORD)?;
    let before = sys::blocked_signals();
    sys::block_only(before | ALL_SIGNALS); // The new thread inherits this.
    let started = start_helper(name, stack, move || {
        valgrind::note_platform_thread();
        f();
    });
    sys::block_only(before);
    started
}

/// A bound on what the server does at once. Its platform threads wait for permits in the kernel.
struct Permits {
    used: AtomicU32,
    most: u32,
}

impl Permits {
    const fn new(most: u32) -> Permits {
        Permits {
            used: AtomicU32::new(0),
            most,
        }
    }

    fn used(&self) -> u32 {
        self.used.load(Relaxed) // Relaxed: carries no other data; the listener looks again.
    }

    /// Takes all permits back, in the child of a fork.
    fn reset(&self) {
        self.used.store(0, Relaxed); // Relaxed: the server has no thread yet.
    }

    /// Takes a permit if one is left.
    fn take(&'static self) -> Option<Permit> {
        let more = |used: u32| (used < self.most).then_some(used + 1);
        // AcqRel: pairs with the drop of the permit.
        self.used.fetch_update(AcqRel, Relaxed, more).ok()?;
        Some(Permit(self))
    }

    /// Takes a permit if one is left within this time.
    fn take_within(&'static self, time: Duration) -> Option<Permit> {
        let deadline = Deadline::after(time);
        loop {
            match self.take() {
                None if !deadline.has_passed() => {
                    // Returns at once if a permit has been given back since.
                    let _ = sys::futex_wait(&self.used, self.most, deadline);
                }
                taken => return taken,
            }
        }
    }
}

/// One of some [`Permits`], given back when it is dropped.
struct Permit(&'static Permits);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, AcqRel); // AcqRel: pairs with `take`.
        sys::futex_wake(&self.0.used, 1);
    }
}
