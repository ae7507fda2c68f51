//! Signals sent to the process that only virtual threads do not block.
//!
//! The kernel gives such a signal to a platform thread that does not block it, `main` before
//! others. Where all of them block it, it stays pending for the process: the kernel does not know
//! that a virtual thread would take it. So it is looked for, and given to one of these,
//!
//! * when it arrives: a helper thread is told by the kernel (`signalfd`, and `epoll` for arrivals
//!   alone: a signal that no thread takes stays readable), or looks for itself if it is not told;
//! * when a virtual thread unblocks it: by that thread itself;
//! * when a platform thread blocks it, for which the kernel may have chosen that one; and when a
//!   virtual thread begins, or has left a handler: by that thread, if the signal was [left](LEFT);
//! * when a thread of the process sends it by `kill`: by that one. If only the sender does
//!   not block the signal, POSIX requires its delivery before `kill` returns.
//!
//! The helper is started when a platform thread blocks signals, ends as `main` does, or a virtual
//! thread unblocks some; programs without signals have none. It has a table of descriptors of its
//! own, so a program that closes all of its descriptors does not close these.

use crate::registry::interposed;
use crate::signals::masks::InKernel;
use crate::signals::{delivery, information, sending};
use crate::{identity, simulated, virtual_thread};
use core::convert::Infallible;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
use libc::{pid_t, siginfo_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::fds::other_table;
use pirn_rt::environment;
use pirn_rt::no_suspend::{self, NoSuspend};
use pirn_rt::sanitizer::valgrind;
use pirn_rt::sched::runtime::{self, Runtime};
use pirn_rt::stack::{Slot, region};
use pirn_rt::sys::{self, Errno, call};
use pirn_rt::vthread::signals::{self, LEFT, NEVER_BLOCKED, SYNCHRONOUS, bit};
use pirn_rt::vthread::{start_helper, table};
use std::fs;
use std::path::Path;

interposed! {
    family "Signals to processes" for Scaling;

    Own by hand { kill: "delivers what only the caller takes" }
}

/// The signals that are given out: all but `SIGURG`, which carriers take themselves.
const GIVEN: u64 = !(SYNCHRONOUS | NEVER_BLOCKED | bit(pirn_rt::sched::preempt::SIGNAL));

/// Whether the process has the helper.
static HELPED: AtomicBool = AtomicBool::new(false);

/// Whether a thread gives signals out. Others wait: a signal that it has taken is soon with a
/// thread. Not a lock of the runtime's: threads are woken meanwhile.
static GIVING: AtomicBool = AtomicBool::new(false);

/// The right to give signals out.
struct Turn;

impl Turn {
    fn take() -> Turn {
        for round in 0.. {
            if !GIVING.swap(true, SeqCst) {
                break;
            }
            sys::back_off(round);
        }
        Turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        GIVING.store(false, SeqCst);
    }
}

/// Begins anew, in the child of a fork: it has no helper, and no other thread gives signals out.
pub(crate) fn after_fork() {
    HELPED.store(false, SeqCst);
    GIVING.store(false, SeqCst);
    signals::after_fork();
}

/// Starts the helper, if there are virtual threads and it does not run yet. Not in a handler of a
/// signal. Without memory or OS threads for it, signals wait until a thread unblocks them.
pub fn watch() {
    if !runtime::is_started() || no_suspend::is_on() || HELPED.swap(true, SeqCst) {
        return;
    }
    let started = {
        let _undisturbed = InKernel::of_helper(); // Allocates, and a handler may wait for the helper.
        start_helper("pirn-signals", 64 << 10, help)
    };
    if let Err(error) = started {
        HELPED.store(false, SeqCst); // The next caller tries again.
        static SAID: AtomicBool = AtomicBool::new(false);
        let so = "a signal that only virtual threads take waits until a thread unblocks its number";
        environment::notice_no_thread(&SAID, &error, so);
    }
}

/// How often the helper looks for signals if the kernel does not tell it of their arrival.
const LOOK_NS: u64 = 10_000_000;

/// What the helper thread does: gives signals out when they arrive. It lasts as long as the
/// process.
fn help() {
    valgrind::note_platform_thread();
    signals::block_others();
    let runtime = runtime::get().expect("virtual threads run");
    loop {
        // A shortage of descriptors or memory may pass, so it tries again each time.
        let Err(_) = give_out_on_arrival(runtime);
        give_out(GIVEN);
        sys::nap(LOOK_NS);
    }
}

/// Returns only if the kernel does not tell of arrivals.
fn give_out_on_arrival(runtime: &Runtime) -> Result<Infallible, Errno> {
    let arrivals = arrivals(runtime)?;
    loop {
        give_out(GIVEN);
        // SAFETY: all zeros is an event, and the kernel writes one.
        let mut event: libc::epoll_event = unsafe { core::mem::zeroed() };
        let (place, one, for_ever) = (&raw mut event, 1, -1_isize);
        // SAFETY: all zeros is an event, and the kernel writes one.
        match unsafe { call!(libc::SYS_epoll_pwait, arrivals, place, one, for_ever, 0, 0) } {
            Ok(_) | Err(Errno(libc::EINTR)) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns a descriptor, in a table of the running thread's own, that has an event for each signal
/// that becomes pending for the process. Closes what an earlier attempt has opened there.
fn arrivals(runtime: &Runtime) -> Result<c_int, Errno> {
    let mut event = libc::epoll_event {
        events: (libc::EPOLLIN | libc::EPOLLET) as u32,
        u64: 0,
    };
    other_table::make(&runtime.poller)?;
    const NEW: c_int = -1;
    let (given, cloexec) = (GIVEN, libc::SFD_CLOEXEC);
    // SAFETY: eight bytes, and a valid event.
    unsafe {
        let signals = call!(libc::SYS_signalfd4, NEW, &raw const given, 8, cloexec)?;
        let poller = call!(libc::SYS_epoll_create1, libc::EPOLL_CLOEXEC)?;
        let (add, event) = (libc::EPOLL_CTL_ADD, &raw mut event);
        call!(libc::SYS_epoll_ctl, poller, add, signals, event)?;
        Ok(poller as c_int)
    }
}

/// Returns the signals that are pending for the process. This carrier or helper blocks all that are
/// given out, and the kernel tells no others.
fn pending() -> u64 {
    let mut set = 0u64;
    // SAFETY: the kernel writes eight bytes.
    let result = unsafe { call!(libc::SYS_rt_sigpending, &raw mut set, 8) };
    match result {
        Ok(_) => set,
        Err(_) => set_in(&status_in(Path::new("/proc/self")), "ShdPnd:").unwrap_or(0),
    }
}

/// Returns what the kernel tells of a process or a thread; nothing once it has ended.
fn status_in(folder: &Path) -> String {
    fs::read_to_string(folder.join("status")).unwrap_or_default()
}

/// Returns a value of a status.
fn value_in<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    let value = status.lines().find_map(|line| line.strip_prefix(key));
    value.map(str::trim)
}

/// Returns a set of signals of a status.
fn set_in(status: &str, key: &str) -> Option<u64> {
    value_in(status, key).and_then(|value| u64::from_str_radix(value, 16).ok())
}

/// Takes note that the running virtual thread has unblocked these signals.
pub(crate) fn unblocked(signals: u64) {
    if signals & GIVEN != 0 && !no_suspend::is_on() {
        give_out(signals);
        delivery::at_once(); // Also what the helper has just given to this thread.
        watch();
    }
}

/// Gives out the signals of this set that are [left](LEFT). When they came, the only thread that
/// takes them was in a handler or had not begun, or the kernel had chosen a platform thread that
/// then blocked them.
pub(crate) fn look_again(signals: u64) {
    if LEFT.load(SeqCst) & signals != 0 && !no_suspend::is_on() {
        let _undisturbed = InKernel::of_helper(); // As in `kill`.
        give_out(signals);
    }
}

#[libc_fn]
pub fn kill(process: pid_t, signal: c_int) -> c_int {
    let process = match identity::process_of(process) {
        Ok(process) => process,
        Err(e) => return sys::to_c(Err(e)) as c_int,
    };
    // SAFETY: no pointers.
    let simulated = unsafe { simulated::call(libc::SYS_kill, [process as usize, signal as usize]) };
    if let Some(result) = simulated {
        return sys::to_c(result) as c_int;
    }
    // SAFETY: no pointers.
    let result = unsafe { call!(libc::SYS_kill, process, signal) };
    let here = process == 0 || process.cast_unsigned() == std::process::id();
    if result.is_ok() && here && signal != 0 && runtime::is_started() && !no_suspend::is_on() {
        if virtual_thread().is_some() {
            give_out(bit(signal));
            delivery::at_once();
        } else {
            let _undisturbed = InKernel::of_helper(); // A handler may want to give some out, too.
            give_out(bit(signal));
        }
    }
    sys::to_c(result) as c_int
}

/// Gives the process's pending signals among `signals` to virtual threads that do not block them,
/// unless a platform thread takes them.
fn give_out(signals: u64) {
    let _section = NoSuspend::new(); // A carrier may wait for the turn.
    let _turn = Turn::take();
    let mut left = pending() & signals & GIVEN;
    LEFT.store(LEFT.load(SeqCst) & !signals | left, SeqCst);
    while left != 0 {
        let signal = left.trailing_zeros() as c_int + 1;
        left &= left - 1;
        let mut taker = who_wants(signal).or_else(|| {
            // After it, a thread that begins sees that the signal is left, or is found here.
            let _ = sys::barrier_in_every_thread();
            who_wants(signal)
        });
        // Asked once for all of the kind: it takes long.
        if taker.is_some() && platform_thread_takes(signal) {
            continue;
        }
        while let Some(slot) = taker {
            taker = hand_over(signal, slot).then(|| who_wants(signal)).flatten();
        }
    }
}

/// Returns a virtual thread that does not block a signal; if there is one, one that has not been
/// given such a signal yet.
fn who_wants(signal: c_int) -> Option<Slot> {
    let (mut free, mut busy) = (None, None);
    region::for_each_open(|slot| {
        let wants = |core: &pirn_rt::vthread::Core| {
            let given = core.signals.pending.load(SeqCst) & bit(signal) != 0;
            core.signals.wants(signal).then_some(given)
        };
        if free.is_none()
            && let Some(Some(given)) = table::visit(slot, wants)
        {
            *(if given { &mut busy } else { &mut free }) = Some(slot);
        }
    });
    free.or(busy)
}

/// Returns whether a platform thread does not block a signal, so that the kernel has chosen it.
/// Carriers and helpers block all.
fn platform_thread_takes(signal: c_int) -> bool {
    let takes = |path: &Path| {
        let status = status_in(path);
        // The first thread, if it has ended before the process.
        let has_ended = value_in(&status, "State:").is_some_and(|state| state.starts_with('Z'));
        !has_ended && set_in(&status, "SigBlk:").is_some_and(|set| set & bit(signal) == 0)
    };
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    tasks.flatten().any(|task| takes(&task.path()))
}

/// Takes a pending signal from the process, and makes it pending for a virtual thread. Returns
/// whether to look for more of the kind.
fn hand_over(signal: c_int, slot: Slot) -> bool {
    let _undisturbed = InKernel::of_helper(); // As in `sending`.
    let info = match take(bit(signal)) {
        Ok(info) => info,
        Err(Errno(libc::EAGAIN)) => {
            LEFT.fetch_and(!bit(signal), SeqCst);
            return false;
        }
        Err(error) => cannot_take(error),
    };
    let posted = table::visit(slot, |core| {
        let posted = sending::post(core, &info, true).is_ok();
        if posted && !core.signals.wants(signal) {
            // It has just blocked the signal, and has not seen that it is there.
            information::take_of_process(core, bit(signal), sending::to_process);
        }
        posted
    });
    if posted != Some(true) {
        // The thread has ended, or there is no room for one more signal.
        sending::to_process(&info);
    }
    posted != Some(false)
}

/// Ends the process: a signal would be lost without a word.
#[cold]
pub(super) fn cannot_take(error: Errno) -> ! {
    sys::fatal(&[
        "a signal cannot be delivered to a virtual thread: rt_sigtimedwait failed: ",
        &error.to_string(),
        " (does a seccomp profile forbid it?)",
    ])
}

/// Takes a signal of a set off those that are pending for the process.
///
/// # Errors
/// `EAGAIN`: none of them is.
pub(crate) fn take(set: u64) -> Result<siginfo_t, Errno> {
    let now = sys::timespec(0);
    // SAFETY: all zeros is a valid information, which the kernel writes; it reads the rest.
    unsafe {
        let mut info: siginfo_t = core::mem::zeroed();
        let (set, place, now) = (&raw const set, &raw mut info, &raw const now);
        call!(libc::SYS_rt_sigtimedwait, set, place, now, 8)?;
        sending::restore_code(&mut info);
        Ok(info)
    }
}
