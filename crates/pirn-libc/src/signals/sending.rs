//! Sending signals to threads: `pthread_kill`, `pthread_sigqueue`, `raise`; by their ids
//! ([`identity`]) `tgkill`.

use crate::forward::number;
use crate::identity::{self, Whose, slot_of};
use crate::posix;
use crate::registry::interposed;
use crate::signals::masks::InKernel;
use crate::signals::{delivery, information};
use core::ffi::c_int;
use core::sync::atomic::Ordering::SeqCst;
use libc::{pid_t, pthread_t, siginfo_t, sigval};
use pirn_libc_macros::libc_fn;
use pirn_rt::no_suspend::NoSuspend;
use pirn_rt::sched::runtime;
use pirn_rt::sched::safepoint;
use pirn_rt::stack::Slot;
use pirn_rt::sys::{self, Errno, SignalInfo, SysResult, call};
use pirn_rt::vthread::signals::bit;
use pirn_rt::vthread::{self, Core};

interposed! {
    family "Signals to threads" for Correctness;

    Own by hand {
        pthread_kill, pthread_sigqueue,
    }
    Own as {
        /// To a virtual thread, as `pthread_kill`.
        fn tgkill(process: pid_t, id: pid_t, signal: c_int) -> c_int
            = sys::to_c(to_id(Some(process), id, signal)) as c_int;
        fn raise(signal: c_int) -> c_int = match vthread::current() {
            Some(own) => {
                let sent = send(&Target::Oneself(&own), &plain(signal));
                sys::to_c(sent.map(|()| 0)) as c_int
            }
            None => libcs!(),
        };
        fn gsignal(signal: c_int) -> c_int = raise(signal);
    }
}

/// Signals from here on are queued: each comes as often as it was sent.
const FIRST_QUEUED: c_int = 32;

/// The code of a signal that a thread has sent to a thread.
const SI_TKILL: c_int = -6;

/// Returns the information with a signal sent by `pthread_kill`.
pub(super) fn plain(signal: c_int) -> siginfo_t {
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

/// Makes a signal pending for a thread, and requests a safe point if it is to be delivered. A
/// thread that cannot take one that was sent to the process gives it back.
///
/// # Errors
/// `EAGAIN`: there is no room for the information of a signal that needs it, because the signal
/// queues or was sent to the process.
pub(crate) fn post(thread: &Core, info: &siginfo_t, of_process: bool) -> Result<(), Errno> {
    let signal = info.si_signo;
    let is_plain = !of_process && signal < FIRST_QUEUED;
    // Of several pending signals with this number, the first is kept.
    let is_there = is_plain && thread.signals.pending.load(SeqCst) & bit(signal) != 0;
    if !is_there {
        if !information::put(thread, info, of_process) && !is_plain {
            return Err(Errno(libc::EAGAIN));
        }
        thread.signals.pending.fetch_or(bit(signal), SeqCst);
    }
    tell(thread, signal);
    Ok(())
}

/// In the upper half of `si_errno`, which is 0 otherwise: the lower half is the signal's code.
const HAS_CODE: c_int = 0x5052 << 16;

/// Returns an information that any thread may send to the process or to its first thread. The
/// kernel takes codes of its own, such as `kill`'s and `SIGCHLD`'s, only from that thread
/// (`do_rt_sigqueueinfo`: `EPERM`), so the code travels in another field.
pub(super) fn for_any_sender(info: &siginfo_t) -> siginfo_t {
    let mut info = *info;
    if info.si_code >= 0 || info.si_code == SI_TKILL {
        info.si_errno = HAS_CODE | info.si_code & 0xffff;
        info.si_code = libc::SI_QUEUE;
    }
    info
}

/// Restores the code of an information that [`for_any_sender`] has changed.
pub(super) fn restore_code(info: &mut siginfo_t) {
    if info.si_code == libc::SI_QUEUE && info.si_errno & !0xffff == HAS_CODE {
        info.si_code = c_int::from(info.si_errno as i16);
        info.si_errno = 0;
    }
}

/// Sends a signal that a thread cannot take back to the process.
pub(super) fn to_process(info: &siginfo_t) {
    let (process, signal, info) = (std::process::id(), info.si_signo, for_any_sender(info));
    // SAFETY: an information, which the kernel copies.
    let _ = unsafe { call!(libc::SYS_rt_sigqueueinfo, process, signal, &raw const info) };
}

/// Gives pending signals of the running thread that are in a set, and that the thread blocks, back
/// to the process, if they were sent to the process: another thread may take them.
#[cold]
pub(super) fn give_back(thread: &Core, signals: u64) {
    let _section = NoSuspend::new(); // As in `take`.
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
        Some(own) if own.as_ptr().as_ptr().cast_const() == thread => safepoint::note_own(own),
        _ => safepoint::request(thread),
    }
}

/// Takes a pending signal from the running thread. Returns its information, or `None` if it has
/// been taken already: the sender sets the bit after it has put the information there, where it
/// may have been found meanwhile.
pub(crate) fn take(thread: &Core, signal: c_int) -> Option<siginfo_t> {
    let _section = NoSuspend::new(); // A handler that ran here would take the same signal.
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
    /// The thread in this slot, with this id if the sender has named it by that. It may end at any
    /// time: because of the signal, too.
    Another(Slot, Option<pid_t>),
}

/// Returns the target, if it is a virtual thread. `id`: by what the sender has named it.
fn target<'a>(thread: pthread_t, id: Option<pid_t>) -> Option<Target<'a>> {
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
    Some(Target::Another(slot, id))
}

/// Sends a signal, or 0, to a virtual thread.
fn send(target: &Target, info: &siginfo_t) -> Result<(), Errno> {
    if !(0..=64).contains(&info.si_signo) {
        return Err(Errno(libc::EINVAL));
    }
    let post = |thread: &Core| match info.si_signo {
        0 => Ok(()),
        _ => post(thread, info, false),
    };
    match target {
        Target::Oneself(thread) => {
            let result = {
                let _section = NoSuspend::new(); // A handler may send the same signal.
                post(thread)
            };
            delivery::at_once();
            result
        }
        &Target::Another(slot, id) => {
            // A handler could wait for what this thread holds.
            let _undisturbed = InKernel::of_helper();
            // As glibc has it: a thread that has ended can be named until it is joined.
            let is_named = || id.is_none() && posix::find(slot.pthread() as pthread_t).is_some();
            identity::visit(slot, id, post).unwrap_or_else(|| match is_named() {
                true => Ok(()),
                false => Err(Errno(libc::ESRCH)),
            })
        }
    }
}

/// Sends a signal to the virtual thread with this id, with all that comes with it.
pub(crate) fn send_info(thread: pthread_t, id: pid_t, info: &siginfo_t) -> SysResult {
    let target = target(thread, Some(id)).ok_or(Errno(libc::ESRCH))?;
    send(&target, info).map(|()| 0)
}

#[libc_fn]
pub unsafe fn pthread_kill(thread: pthread_t, signal: c_int) -> c_int {
    match target(thread, None) {
        None => libcs!(),
        Some(target) => number(send(&target, &plain(signal))),
    }
}

#[libc_fn]
pub unsafe fn pthread_sigqueue(thread: pthread_t, signal: c_int, value: sigval) -> c_int {
    match target(thread, None) {
        None => libcs!(),
        Some(target) => {
            let info = information_of(signal, libc::SI_QUEUE, value.sival_ptr as usize);
            number(send(&target, &info))
        }
    }
}

/// Sends a signal to the thread with an id, of a process if that is given.
pub(crate) fn to_id(process: Option<pid_t>, id: pid_t, signal: c_int) -> SysResult {
    // What `gettid` gives in Rust programs: the carrier blocks the signal.
    let id = identity::of_own_carrier(id).unwrap_or(id);
    let whose = match id {
        ..=0 => Whose::Kernels, // It refuses them.
        _ => identity::find(id)?,
    };
    match (whose, process) {
        (Whose::Virtual(_), Some(..=0)) => Err(Errno(libc::EINVAL)),
        (Whose::Virtual(_), Some(process)) if process.cast_unsigned() != std::process::id() => {
            Err(Errno(libc::ESRCH))
        }
        (Whose::Virtual(thread), _) => send_info(thread, id, &plain(signal)),
        // SAFETY: no pointers.
        (Whose::Kernels, Some(process)) => unsafe { call!(libc::SYS_tgkill, process, id, signal) },
        // SAFETY: no pointers.
        (Whose::Kernels, None) => unsafe { call!(libc::SYS_tkill, id, signal) },
    }
}

/// Sends a signal with an information at this address to a virtual thread; `None`: it is the
/// kernel's.
///
/// # Safety
/// The caller may read there.
pub(crate) unsafe fn queue_to_id(
    process: pid_t,
    id: pid_t,
    signal: c_int,
    info: usize,
) -> Option<SysResult> {
    let own = process.cast_unsigned() == std::process::id();
    let id = identity::of_own_carrier(id).unwrap_or(id);
    let thread = match identity::find(id) {
        _ if id <= 0 || !own => return None,
        Ok(Whose::Kernels) => return None,
        Ok(Whose::Virtual(thread)) => thread,
        Err(e) => return Some(Err(e)),
    };
    let words = size_of::<siginfo_t>() / size_of::<u64>();
    if let Err(e) = (0..words).try_for_each(|i| sys::fetch_u64(info + i * 8).map(drop)) {
        return Some(Err(e));
    }
    // SAFETY: readable a moment ago.
    let mut info = unsafe { (info as *const siginfo_t).read_unaligned() };
    info.si_signo = signal;
    Some(send_info(thread, id, &info))
}

#[cfg(test)]
mod tests;
