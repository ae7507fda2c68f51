//! Sending signals to threads: `pthread_kill`, `pthread_sigqueue`, `raise`. By their ids:
//! [`by_id`](crate::signals::by_id).

use crate::identity::slot_of;
use crate::posix::core_of;
use crate::registry::interposed;
use crate::signals::masks::InKernel;
use crate::signals::{delivery, information};
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::Ordering::SeqCst;
use libc::{pthread_t, siginfo_t, sigval};
use pirn_rt::glibc::symbols::real;
use pirn_rt::mark::Raised;
use pirn_rt::runtime;
use pirn_rt::stack::Slot;
use pirn_rt::sys::{self, Errno, SignalInfo, SysResult, call};
use pirn_rt::vthread::signals::bit;
use pirn_rt::vthread::{self, Core, summons, table};

interposed! {
    family "Signals to threads" for Correctness;

    Own by hand {
        pthread_kill, pthread_sigqueue, raise, gsignal,
    }
}

/// Signals from here on are queued: each comes as often as it was sent.
const FIRST_QUEUED: c_int = 32;

/// Returns the information with a signal sent by `pthread_kill`.
pub(super) fn plain(signal: c_int) -> siginfo_t {
    const SI_TKILL: c_int = -6;
    information_of(signal, SI_TKILL, 0)
}

/// Returns the information with a signal that this process sends.
fn information_of(signal: c_int, code: c_int, value: usize) -> siginfo_t {
    // SAFETY: no arguments.
    let uid = unsafe { libc::getuid() };
    let info = SignalInfo::new(signal, code, uid, value);
    // SAFETY: of the same size and layout.
    unsafe { core::mem::transmute::<SignalInfo, siginfo_t>(info) }
}

/// Makes a signal pending for a thread, and summons the thread if it is to be delivered.
///
/// # Errors
/// `EAGAIN`: a signal that queues finds no room.
pub(crate) fn post(thread: &Core, info: &siginfo_t) -> Result<(), Errno> {
    let signal = info.si_signo;
    if signal < FIRST_QUEUED && thread.signals.pending.load(SeqCst) & bit(signal) != 0 {
        // One of its kind is kept, the first.
        tell(thread, signal);
        return Ok(());
    }
    if !information::put(thread, info, false) && signal >= FIRST_QUEUED {
        return Err(Errno(libc::EAGAIN));
    }
    thread.signals.pending.fetch_or(bit(signal), SeqCst);
    tell(thread, signal);
    Ok(())
}

/// Makes a signal that was sent to the process pending for a thread, as [`post`] does. Returns
/// whether there was room.
pub(super) fn post_of_process(thread: &Core, info: &siginfo_t) -> bool {
    if !information::put(thread, info, true) {
        return false;
    }
    thread.signals.pending.fetch_or(bit(info.si_signo), SeqCst);
    tell(thread, info.si_signo);
    true
}

/// Sends a signal to the process again that a thread cannot take.
pub(super) fn to_process(info: &siginfo_t) {
    let (process, signal, info) = (std::process::id(), info.si_signo, ptr::from_ref(info));
    // SAFETY: an information, which a process may send to itself whatever it says.
    let _ = unsafe { call!(libc::SYS_rt_sigqueueinfo, process, signal, info) };
}

/// Gives the running thread's signals of a set, which it blocks, back to the process, if they were
/// sent to that: another thread may take them.
#[cold]
pub(super) fn give_back(thread: &Core, signals: u64) {
    let _mark = Raised::new(); // As in `take`.
    let before = thread.signals.pending.fetch_and(!signals, SeqCst);
    information::take_of_process(thread, signals, to_process);
    // What is left: as in `take`.
    let mut left = before & signals;
    while left != 0 {
        let signal = left.trailing_zeros() as c_int + 1;
        if information::any(thread, signal) || information::has_overflowed() {
            thread.signals.pending.fetch_or(bit(signal), SeqCst);
        }
        left &= left - 1;
    }
}

/// Gives up what is pending for a thread that has ended.
pub(super) fn discard(thread: &Core) {
    information::discard(thread, to_process);
}

fn tell(thread: &Core, signal: c_int) {
    if !thread.signals.wants(signal) {
        return;
    }
    match vthread::current() {
        Some(own) if own.as_ptr().as_ptr().cast_const() == thread => summons::note_own(own),
        _ => summons::summon(thread),
    }
}

/// Takes a pending signal off those of the running thread. Returns its information, or `None` if
/// it has been taken already: its sender sets the bit after the information is there, when it may
/// have been found.
pub(crate) fn take(thread: &Core, signal: c_int) -> Option<siginfo_t> {
    let _mark = Raised::new(); // A handler that ran here would take the same signal.
    // Before the information is looked at: a signal that is sent meanwhile sets it again.
    let before = thread.signals.pending.fetch_and(!bit(signal), SeqCst);
    let info = information::take(thread, signal);
    if information::any(thread, signal) {
        thread.signals.pending.fetch_or(bit(signal), SeqCst);
    }
    let bare = || {
        let pending = before & bit(signal) != 0 && information::has_overflowed();
        let bare = pending && signal < FIRST_QUEUED;
        bare.then(|| information_of(signal, libc::SI_USER, 0))
    };
    info.or_else(bare)
}

/// A virtual thread as the target of a signal.
enum Target<'a> {
    Oneself(&'a Core),
    /// Made by `pthread_create`: the record stays until it is joined.
    Joinable(&'a Core),
    Resident(Slot),
}

/// Returns the target, if it is a virtual thread.
fn target<'a>(thread: pthread_t) -> Option<Target<'a>> {
    if !runtime::is_started() {
        return None;
    }
    let slot = slot_of(thread)?;
    if let Some(own) = vthread::current()
        && own.slot() == Some(slot)
    {
        // SAFETY: the running thread's record, which outlives the call.
        return Some(Target::Oneself(unsafe { own.as_ptr().as_ref() }));
    }
    Some(match core_of(thread) {
        Some(core) => Target::Joinable(core),
        None => Target::Resident(slot),
    })
}

/// Sends a signal, or 0, to a virtual thread.
fn send(target: &Target, info: &siginfo_t) -> Result<(), Errno> {
    if !(0..=64).contains(&info.si_signo) {
        return Err(Errno(libc::EINVAL));
    }
    let post = |thread: &Core| match info.si_signo {
        0 => Ok(()),
        _ => post(thread, info),
    };
    match target {
        Target::Oneself(thread) => {
            let result = post(thread);
            delivery::at_once();
            result
        }
        Target::Joinable(thread) => {
            // A handler could wait for what this thread holds.
            let _undisturbed = InKernel::of_helper();
            match thread.has_ended() {
                true => Ok(()), // As glibc has it.
                false => post(thread),
            }
        }
        Target::Resident(slot) => {
            // A handler could wait for what this thread holds.
            let _undisturbed = InKernel::of_helper();
            table::visit(*slot, post).unwrap_or(Err(Errno(libc::ESRCH)))
        }
    }
}

/// Sends a signal to a virtual thread, with all that comes with it.
pub(crate) fn send_info(thread: pthread_t, info: &siginfo_t) -> SysResult {
    let target = target(thread).ok_or(Errno(libc::ESRCH))?;
    send(&target, info).map(|()| 0)
}

/// Returns an error number, as pthread functions do.
fn number(result: Result<(), Errno>) -> c_int {
    result.map_or_else(|e| e.0, |()| 0)
}

/// `pthread_kill`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_kill(thread: pthread_t, signal: c_int) -> c_int {
    match target(thread) {
        // SAFETY: the caller's contract.
        None => unsafe { real!(fn pthread_kill(thread: pthread_t, signal: c_int) -> c_int) },
        Some(target) => number(send(&target, &plain(signal))),
    }
}

/// `pthread_sigqueue`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_sigqueue(
    thread: pthread_t,
    signal: c_int,
    value: sigval,
) -> c_int {
    match target(thread) {
        // SAFETY: the caller's contract.
        None => unsafe {
            real!(fn pthread_sigqueue(thread: pthread_t, signal: c_int, value: sigval) -> c_int)
        },
        Some(target) => {
            let info = information_of(signal, libc::SI_QUEUE, value.sival_ptr as usize);
            number(send(&target, &info))
        }
    }
}

/// Sends a signal to the running virtual thread.
fn raise_here(thread: &Core, signal: c_int) -> SysResult {
    send(&Target::Oneself(thread), &plain(signal)).map(|()| 0)
}

/// `raise`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn raise(signal: c_int) -> c_int {
    match vthread::current() {
        Some(own) => sys::to_c(raise_here(&own, signal)) as c_int,
        // SAFETY: no pointers.
        None => unsafe { real!(fn raise(signal: c_int) -> c_int) },
    }
}

/// `gsignal`.
#[unsafe(no_mangle)]
pub extern "C" fn gsignal(signal: c_int) -> c_int {
    raise(signal)
}

#[cfg(test)]
mod tests;
