//! Signal masks: `pthread_sigmask`, `sigprocmask`, and what is pending: `sigpending`.

use crate::forward::number;
use crate::registry::interposed;
use crate::signals::{delivery, process_wide, sending};
use core::ffi::c_int;
use core::sync::atomic::Ordering::SeqCst;
use libc::sigset_t;
use pirn_libc_macros::libc_fn;
use pirn_rt::no_suspend::NoSuspend;
use pirn_rt::sched::safepoint;
use pirn_rt::sched::{self, runtime};
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::vthread::signals::{self, NEVER_BLOCKED, SYNCHRONOUS};
use pirn_rt::vthread::{self, Core, Current};

interposed! {
    family "Signal masks" for Correctness;

    Own by hand { pthread_sigmask, sigprocmask, sigpending }
    Own as {
        fn sighold(signal: c_int) -> c_int = one(libc::SIG_BLOCK, signal);
        fn sigrelse(signal: c_int) -> c_int = one(libc::SIG_UNBLOCK, signal);
        fn sigblock(mask: c_int) -> c_int = word(libc::SIG_BLOCK, mask);
        fn sigsetmask(mask: c_int) -> c_int = word(libc::SIG_SETMASK, mask);
        fn siggetmask() -> c_int = word(libc::SIG_BLOCK, 0);
    }
}

/// Returns the kernel's part of a set of the C library's, which begins with it: the first 64
/// signals.
pub(super) fn bits(set: &mut sigset_t) -> &mut u64 {
    // SAFETY: a set begins with the kernel's.
    unsafe { &mut *core::ptr::from_mut(set).cast() }
}

/// Returns the kernel's part of a set that is only read.
pub(super) fn bits_of(set: &sigset_t) -> u64 {
    // SAFETY: a set begins with the kernel's.
    unsafe { core::ptr::from_ref(set).cast::<u64>().read() }
}

/// Reads the kernel's part of a set, which may have no other part; `None` for null.
///
/// # Safety
/// A set, or null.
pub(super) unsafe fn read(set: *const sigset_t) -> Option<u64> {
    // SAFETY: the caller's contract; as in `bits`.
    unsafe { set.cast::<u64>().as_ref().copied() }
}

/// Makes these the signals that the running virtual thread blocks, and delivers the pending ones
/// that it no longer blocks. Returns the signals that it blocked before.
pub(crate) fn exchange(thread: Current, mask: u64) -> u64 {
    let before = thread.signals.mask.swap(mask & !NEVER_BLOCKED, SeqCst);
    if thread.signals.pending.load(SeqCst) & mask & !before != 0 {
        sending::give_back(&thread, mask & !before);
    }
    if thread.signals.has_work() {
        safepoint::note_own(thread);
        delivery::at_once();
    }
    before
}

/// Makes these the signals that the running virtual thread blocks. The pending ones that it no
/// longer blocks are delivered soon.
pub(super) fn set_quietly(thread: &Core, mask: u64) {
    thread.signals.mask.store(mask & !NEVER_BLOCKED, SeqCst);
    if thread.signals.has_work() {
        safepoint::request(thread);
    }
}

/// Calls `wait`, which parks until its timeout, with this mask, as `ppoll` does: a signal that the
/// mask lets through ends the wait, and its handler runs before the mask is restored. A null mask
/// changes nothing.
///
/// Meanwhile the thread blocks all signals, and awaits the ones that the mask lets through: a
/// handler that ran before the wait would not end it.
pub(crate) fn waiting(
    thread: Current,
    mask: *const sigset_t,
    timeout: Option<u64>,
    mut wait: impl FnMut(Option<u64>) -> SysResult,
) -> SysResult {
    if mask.is_null() {
        return wait(timeout);
    }
    with(thread, sys::fetch_u64(mask.addr())?, timeout, wait)
}

/// Does what [`waiting`] does, with a mask that has been read. An ignored signal does not end the
/// wait.
pub(super) fn with(
    thread: Current,
    mask: u64,
    timeout: Option<u64>,
    mut wait: impl FnMut(Option<u64>) -> SysResult,
) -> SysResult {
    let (signals, set) = (&thread.signals, !mask & !NEVER_BLOCKED);
    let (begun, start) = (delivery::begun(), sys::now());
    let before = signals.mask.swap(u64::MAX, SeqCst);
    loop {
        signals.awaited.store(set, SeqCst);
        if signals.any_awaited() {
            safepoint::note_own(thread);
        }
        process_wide::unblocked(set);
        let result = wait(timeout.map(|nanos| nanos.saturating_sub(sys::now() - start)));
        let ended = result == Err(Errno(libc::EINTR)) && signals.any_awaited();
        signals.awaited.store(0, SeqCst);
        if ended {
            exchange(thread, mask); // Runs the handlers.
        }
        if !ended || delivery::begun() != begun {
            exchange(thread, before);
            return result;
        }
        signals.mask.store(u64::MAX, SeqCst);
    }
}

/// While this lives, the kernel has another mask for the running OS thread, and the thread stays on
/// it. Empty if there is nothing to change.
pub(crate) struct InKernel(Option<(u64, NoSuspend)>);

impl InKernel {
    /// Gives the carrier the mask of the running virtual thread, for a thread or program that
    /// inherits the mask.
    pub(crate) fn of_this_thread() -> InKernel {
        // A platform thread does not even enter a section: a signal that the section puts off would
        // be blocked in the thread or program that inherits the mask.
        let own = vthread::current().map(|thread| thread.signals.mask.load(SeqCst));
        InKernel(own.map(|mask| InKernel::change(|_| mask)))
    }

    /// Gives the running OS thread, of either kind, the mask of a thread of the runtime: meanwhile
    /// no signal handler runs here, nor on a platform thread that is made here before it has begun.
    pub(crate) fn of_helper() -> InKernel {
        InKernel(Some(InKernel::change(|before| before | signals::OTHERS)))
    }

    /// Changes the mask. Returns the one before.
    fn change(mask: impl FnOnce(u64) -> u64) -> (u64, NoSuspend) {
        let section = NoSuspend::new();
        let before = sys::blocked_signals();
        sys::block_only(mask(before));
        (before, section)
    }
}

impl Drop for InKernel {
    fn drop(&mut self) {
        if let Some((before, _)) = self.0 {
            sys::block_only(before);
        }
    }
}

/// Changes the mask of the running virtual thread as `pthread_sigmask` does. `tell` gets the mask
/// before: a handler that the change lets run may never return here.
///
/// # Errors
/// As `tell`; `EINVAL`, if there is a set but no such `how`.
fn change(
    thread: Current,
    how: c_int,
    new: Option<u64>,
    tell: impl FnOnce(u64) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let before = thread.signals.mask.load(SeqCst);
    let next = match new.map(|new| (how, new)) {
        None => None,
        Some((libc::SIG_BLOCK, set)) => Some(before | set),
        Some((libc::SIG_UNBLOCK, set)) => Some(before & !set),
        Some((libc::SIG_SETMASK, set)) => Some(set),
        Some(_) => return Err(Errno(libc::EINVAL)),
    };
    tell(before)?;
    if let Some(next) = next {
        let jumped = SYNCHRONOUS & !next;
        if how != libc::SIG_BLOCK && jumped != 0 {
            // A handler of a fault that was left unseen has left it blocked in the kernel.
            let (how, set) = (libc::SIG_UNBLOCK, jumped);
            // SAFETY: the kernel reads eight bytes.
            let _ = unsafe { call!(libc::SYS_rt_sigprocmask, how, &raw const set, 0, 8) };
        }
        exchange(thread, next);
        process_wide::unblocked(before & !next);
    }
    Ok(())
}

/// Gives the carrier of a virtual thread the mask that it has outside of handlers, since the thread
/// leaves one that the kernel has run: its own mask is the jump's. A platform thread has the mask
/// that the jump gives it, of which the runtime does not know.
pub(crate) fn leave_handler() {
    let section = NoSuspend::new();
    if vthread::current().is_some()
        && let Some(carrier) = sched::carrier(&section)
    {
        sys::block_only(carrier.blocked_signals());
    } else {
        signals::forget();
    }
}

/// Notes that the running platform thread is about to change its mask in the kernel.
fn note_platform_threads(how: c_int, set: u64) {
    signals::forget();
    if how != libc::SIG_UNBLOCK && set != 0 {
        process_wide::watch();
    }
}

/// `rt_sigprocmask` by number, whose sets have eight bytes. Returns `None` if the call is the
/// kernel's.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn by_number([how, new, old, size, ..]: [usize; 6]) -> Option<SysResult> {
    if size != size_of::<u64>() {
        return None; // It refuses that.
    }
    if !runtime::is_started() {
        // There is no virtual thread to tell, and no handler yet for what cannot be fetched.
        signals::forget();
        return None;
    }
    let set = match new {
        0 => None,
        _ => match sys::fetch_u64(new) {
            Ok(set) => Some(set),
            Err(e) => return Some(Err(e)),
        },
    };
    let Some(thread) = vthread::current() else {
        let set = set?;
        note_platform_threads(how as c_int, set);
        // SAFETY: the caller's contract.
        let result = unsafe { call!(libc::SYS_rt_sigprocmask, how, new, old, size) };
        process_wide::look_again(u64::MAX);
        return Some(result);
    };
    let tell = |before| match old {
        0 => Ok(()),
        // SAFETY: the caller's contract.
        _ => unsafe { sys::store_u64(old, before) },
    };
    Some(change(thread, how as c_int, set, tell).map(|()| 0))
}

/// Returns an error number.
#[libc_fn]
pub unsafe fn pthread_sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    let set = read(new); // All that libc reads.
    if let Some(thread) = vthread::current() {
        let tell = |before| {
            if let Some(old) = old.as_mut() {
                *bits(old) = before;
            }
            Ok(())
        };
        return number(change(thread, how, set, tell));
    }
    let Some(set) = set else {
        return libcs!();
    };
    note_platform_threads(how, set);
    let result = libcs!();
    process_wide::look_again(u64::MAX);
    result
}

#[libc_fn]
pub unsafe fn sigprocmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int {
    match pthread_sigmask(how, new, old) {
        0 => 0,
        e => sys::to_c(Err(Errno(e))) as c_int,
    }
}

/// Blocks or unblocks one signal, as System V's functions do.
fn one(how: c_int, signal: c_int) -> c_int {
    match (1..=64).contains(&signal) {
        true => change_by(how, signals::bit(signal)).map_or(-1, |_| 0),
        false => sys::to_c(Err(Errno(libc::EINVAL))) as c_int,
    }
}

/// Changes the signals from 1 to 32, as BSD's functions do. Returns the mask before.
fn word(how: c_int, mask: c_int) -> c_int {
    change_by(how, u64::from(mask as u32)).map_or(-1, |before| before as c_int)
}

/// Changes the mask of the running thread, and returns the one before; `None` with `errno` set.
pub(super) fn change_by(how: c_int, signals: u64) -> Option<u64> {
    // SAFETY: all zeros is a valid set.
    unsafe {
        let (mut new, mut old): (sigset_t, sigset_t) = core::mem::zeroed();
        *bits(&mut new) = signals;
        let changed = sigprocmask(how, &new, &mut old) == 0;
        changed.then(|| bits_of(&old))
    }
}

/// Returns the thread's own pending signals, and the process's, which the kernel keeps.
#[libc_fn]
pub unsafe fn sigpending(set: *mut sigset_t) -> c_int {
    let result = libcs!();
    if result == 0
        && let Some(thread) = vthread::current()
    {
        let set = bits(&mut *set);
        *set = (*set | thread.signals.pending.load(SeqCst)) & thread.signals.mask.load(SeqCst);
    }
    result
}
