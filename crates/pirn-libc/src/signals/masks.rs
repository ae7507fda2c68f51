//! Signal masks: `pthread_sigmask`, `sigprocmask`, and what is pending: `sigpending`.

use crate::registry::interposed;
use crate::signals::{delivery, process_wide, sending};
use core::ffi::c_int;
use core::sync::atomic::Ordering::SeqCst;
use libc::sigset_t;
use pirn_rt::glibc::symbols::real;
use pirn_rt::mark::Raised;
use pirn_rt::runtime;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::vthread::signals::{self, NEVER_BLOCKED, SYNCHRONOUS};
use pirn_rt::vthread::{self, Core, Current, summons};

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

/// Makes these the signals that the running virtual thread blocks, and delivers what that has
/// unblocked. Returns those before.
pub(crate) fn exchange(thread: Current, mask: u64) -> u64 {
    let before = thread.signals.mask.swap(mask & !NEVER_BLOCKED, SeqCst);
    if thread.signals.pending.load(SeqCst) & mask & !before != 0 {
        sending::give_back(&thread, mask & !before);
    }
    if thread.signals.deliverable() != 0 {
        summons::note_own(thread);
        delivery::at_once();
    }
    before
}

/// Makes these the signals that the running virtual thread blocks. What that unblocks is delivered
/// soon.
pub(super) fn set_quietly(thread: &Core, mask: u64) {
    thread.signals.mask.store(mask & !NEVER_BLOCKED, SeqCst);
    if thread.signals.deliverable() != 0 {
        summons::summon(thread);
    }
}

/// Calls `wait`, which parks until its timeout, with this mask, as `ppoll` does: handlers of what
/// it lets through end the wait, and run before the mask is restored. A null mask changes nothing.
///
/// As in `sigsuspend`, all signals are blocked meanwhile, and those that are let through awaited: a
/// handler that ran in front of the wait would not end it.
pub(crate) fn waiting(
    thread: Current,
    mask: *const sigset_t,
    timeout: Option<u64>,
    mut wait: impl FnMut(Option<u64>) -> SysResult,
) -> SysResult {
    if mask.is_null() {
        return wait(timeout);
    }
    let mask = sys::fetch_u64(mask.addr())?;
    let (signals, set) = (&thread.signals, !mask & !NEVER_BLOCKED);
    let (begun, start) = (delivery::begun(), sys::now());
    let before = signals.mask.swap(u64::MAX, SeqCst);
    loop {
        signals.awaited.store(set, SeqCst);
        if signals.any_awaited() {
            summons::note_own(thread);
        }
        process_wide::unblocked(set);
        let result = wait(timeout.map(|nanos| nanos.saturating_sub(sys::now() - start)));
        let ended = result == Err(Errno(libc::EINTR)) && signals.any_awaited();
        signals.awaited.store(0, SeqCst);
        if !ended {
            exchange(thread, before);
            return result;
        }
        exchange(thread, mask); // Runs the handlers; none if the signal is ignored.
        if delivery::begun() != begun {
            exchange(thread, before);
            return result;
        }
        signals.mask.store(u64::MAX, SeqCst);
    }
}

/// While this lives, the kernel's mask of the carrier is that of the running virtual thread, for
/// what inherits it, and the thread stays on the carrier.
pub(crate) struct InKernel {
    /// The mask to be restored.
    before: Option<u64>,
    _mark: Option<Raised>,
}

impl InKernel {
    pub(crate) fn of_this_thread() -> InKernel {
        let Some(thread) = vthread::current() else {
            // Without the mark: signals that it puts off would be blocked for what inherits it.
            return InKernel {
                before: None,
                _mark: None,
            };
        };
        let mark = Raised::new();
        let carriers = sys::blocked_signals();
        sys::block_only(thread.signals.mask.load(SeqCst));
        InKernel {
            before: Some(carriers),
            _mark: Some(mark),
        }
    }

    /// The same with what threads of the runtime block, on any thread: no handler of a signal runs
    /// here meanwhile, nor on a platform thread that is made, before it has begun.
    pub(crate) fn of_helper() -> InKernel {
        let mark = Raised::new();
        let before = sys::blocked_signals();
        sys::block_only(before | signals::OTHERS);
        InKernel {
            before: Some(before),
            _mark: Some(mark),
        }
    }
}

impl Drop for InKernel {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            sys::block_only(before);
        }
    }
}

/// Changes the mask of the running virtual thread as `pthread_sigmask` does. `tell` gets the mask
/// before: a handler that the change lets run may never return here.
///
/// # Errors
/// That of `tell`; `EINVAL`, if there is a set but no such `how`.
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
            // A handler of a fault that was left by a jump has left it blocked in the kernel.
            let (how, set) = (libc::SIG_UNBLOCK, jumped);
            // SAFETY: the kernel reads eight bytes.
            let _ = unsafe { call!(libc::SYS_rt_sigprocmask, how, &raw const set, 0, 8) };
        }
        exchange(thread, next);
        process_wide::unblocked(before & !next);
    }
    Ok(())
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
        // There is nobody to tell, and no handler yet for what cannot be fetched.
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
        if let Some(set) = set {
            note_platform_threads(how as c_int, set);
        }
        return None;
    };
    let tell = |before| match old {
        0 => Ok(()),
        // SAFETY: the caller's contract.
        _ => unsafe { sys::store_u64(old, before) },
    };
    Some(change(thread, how as c_int, set, tell).map(|()| 0))
}

/// `pthread_sigmask`. Returns an error number.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_sigmask(
    how: c_int,
    new: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    // SAFETY: the caller's contract, here and below.
    unsafe {
        // The C library's set begins with the kernel's, which is all that libc reads and writes.
        let set = new.cast::<u64>().as_ref().copied();
        if let Some(thread) = vthread::current() {
            let tell = |before| {
                if let Some(old) = old.cast::<u64>().as_mut() {
                    *old = before;
                }
                Ok(())
            };
            return change(thread, how, set, tell).map_or_else(|e| e.0, |()| 0);
        }
        if let Some(set) = set {
            note_platform_threads(how, set);
        }
        real!(fn pthread_sigmask(how: c_int, new: *const sigset_t, old: *mut sigset_t) -> c_int)
    }
}

/// `sigprocmask`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sigprocmask(
    how: c_int,
    new: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    // SAFETY: the caller's contract.
    match unsafe { pthread_sigmask(how, new, old) } {
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
fn change_by(how: c_int, bits: u64) -> Option<u64> {
    // SAFETY: all zeros is a valid set, which begins with the kernel's.
    unsafe {
        let (mut new, mut old): (sigset_t, sigset_t) = core::mem::zeroed();
        (&raw mut new).cast::<u64>().write(bits);
        let changed = sigprocmask(how, &new, &mut old) == 0;
        changed.then(|| (&raw const old).cast::<u64>().read())
    }
}

/// `sigpending`: the thread's own, and those of the process, which the kernel keeps.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigpending(set: *mut sigset_t) -> c_int {
    // SAFETY: the caller's contract, here and below.
    let result = unsafe { real!(fn sigpending(set: *mut sigset_t) -> c_int) };
    if result == 0
        && let Some(thread) = vthread::current()
    {
        // SAFETY: as above; the C library's set begins with the kernel's.
        let set = unsafe { &mut *set.cast::<u64>() };
        *set = (*set | thread.signals.pending.load(SeqCst)) & thread.signals.mask.load(SeqCst);
    }
    result
}
