//! Installing signal handlers.
//!
//! A handler may interrupt anything: the runtime, with a lock held, or libc, in the middle of
//! `malloc`. The virtual thread that it runs on must not be parked there: the thread would go on
//! with the interrupted code's locks held, perhaps on another carrier, whose signal mask and
//! alternative stack the end of the handler would overwrite. So our handler calls each of the
//! program's, and begins a [section](pirn_rt::no_suspend): functions called by the handler act as
//! on a platform thread, and may block the carrier.
//!
//! While a handler runs, the signal of preemption is blocked: see [`urgent`]. If the kernel calls a
//! handler on a platform thread in a section of the runtime, the handler runs after the section:
//!
//! ```text
//!   in the section      signal: our handler sends it to this thread again, and returns
//!                       with all signals blocked
//!   end of the section  unblocks them: the kernel calls the program's handler, with the
//!                       stack, mask and information that it would have had
//! ```
//!
//! This does not apply to faults, which must be handled where they happen, so that their signals
//! are never blocked. Nor does it apply to a carrier, which blocks all other signals, and may leave
//! a section by a switch.
//!
//! This is about handlers that the kernel calls. [`signals`](crate::signals) calls handlers of
//! signals to virtual threads, at safe points.
//!
//! Pirn does not see a handler that the program installs by a bare system call, or that a library
//! installs which `dlmopen` has bound to libc's own functions.

use crate::registry::interposed;
use crate::signals::{alternative, default, masks, sending, urgent};
use core::ffi::{c_int, c_void};
use core::mem::{transmute, zeroed};
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use libc::{sighandler_t, siginfo_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::arch::{self, Interruption};
use pirn_rt::glibc::symbols::Real;
use pirn_rt::no_suspend::{self, InHandler, NoSuspend};
use pirn_rt::sched;
use pirn_rt::sys::{self, Errno, call};
use pirn_rt::vthread::signals::{OTHERS, bit};

interposed! {
    family "Signal handlers" for Correctness,
        cannot "park a virtual thread in the handler of a fault: a blocking call there blocks the \
            carrier";

    Own by hand {
        sigaction, sigset, siginterrupt,
    }
    Own as {
        fn __sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction)
            -> c_int
            = sigaction(signal, new, old);
        fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t
            = by_sigaction(signal, handler, None);
        fn bsd_signal(signal: c_int, handler: sighandler_t) -> sighandler_t
            = by_sigaction(signal, handler, None);
        fn ssignal(signal: c_int, handler: sighandler_t) -> sighandler_t
            = by_sigaction(signal, handler, None);
        fn sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t
            = by_sigaction(signal, handler, Some(libc::SA_RESETHAND | libc::SA_NODEFER));
        fn __sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t
            = by_sigaction(signal, handler, Some(libc::SA_RESETHAND | libc::SA_NODEFER));
    }
}

/// Signals are numbered from 1 to 64.
const SIGNALS: usize = 65;

/// The program's handlers, by signal; meaningful while [`dispatch`] is installed.
static HANDLERS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];

static SIGACTION: Real = Real::new(c"sigaction");

/// Looks up libc's `sigaction`, which cannot be done in a signal handler.
pub(crate) fn prepare() {
    SIGACTION.get();
}

/// Calls the program's handler in a section, unless a [fetch](arch::recover) of the runtime has
/// caused the fault.
///
/// Unwinds if the handler does.
unsafe extern "C-unwind" fn dispatch(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the context that the kernel gives to a handler with SA_SIGINFO.
    if matches!(signal, libc::SIGSEGV | libc::SIGBUS) && unsafe { arch::recover(context) } {
        return; // The program's handler might not pass on a fault that it does not know.
    }
    // SAFETY: the kernel's own arguments.
    if unsafe { default::keep(signal, info) } {
        return;
    }
    // SAFETY: the kernel's own arguments. Other flags are the kernel's matter.
    unsafe { call(noted(signal), signal, info, context, 0) };
}

/// Calls the program's `handler` in a section, and forgets it first if `flags` say so.
///
/// Unwinds if the handler does.
///
/// # Safety
/// The arguments of a handler that is running; the program has installed one for this signal.
pub(super) unsafe extern "C-unwind" fn call(
    handler: usize,
    signal: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
    flags: c_int,
) {
    type Handler = unsafe extern "C-unwind" fn(c_int, *mut siginfo_t, *mut c_void);
    // SAFETY: the caller's contract.
    if unsafe { put_off(signal, info, context) } {
        return;
    }
    // SAFETY: null, or room for an information, which the kernel has filled in if the handler gets
    // one.
    if let Some(info) = unsafe { info.as_mut() } {
        sending::restore_code(info);
    }
    if flags & libc::SA_RESETHAND != 0 {
        note(signal, libc::SIG_DFL);
    }
    // SAFETY: the caller's contract.
    let alternative = unsafe { alternative_stack(context) };
    // SAFETY: a handler of the program. One that takes only the signal ignores the other arguments.
    let handler = || unsafe { transmute::<usize, Handler>(handler)(signal, info, context) };
    let run = |stack: &Range<usize>| InHandler::run(signal as u16, stack, handler);
    // SAFETY: the caller's contract.
    unsafe { alternative::in_fault(context, alternative, run) };
}

/// Returns the alternative signal stack that was in force when a signal came; empty if there was
/// none. It would be too late to ask the kernel for a stack with `SS_AUTODISARM`.
///
/// # Safety
/// The third argument of a handler that is running, or null.
unsafe fn alternative_stack(context: *const c_void) -> Range<usize> {
    // SAFETY: the caller's contract.
    let Some(context) = (unsafe { context.cast::<libc::ucontext_t>().as_ref() }) else {
        return 0..0;
    };
    let start = context.uc_stack.ss_sp.addr();
    start..start.saturating_add(context.uc_stack.ss_size)
}

/// Returns the program's handler.
pub(super) fn noted(signal: c_int) -> sighandler_t {
    // Acquire: pairs with the Release in `note`: the installer's earlier writes are visible.
    HANDLERS[signal as usize].load(Ordering::Acquire)
}

/// Notes the program's handler.
pub(super) fn note(signal: c_int, handler: sighandler_t) {
    if is_function(handler) && !is_own(signal) {
        sched::never_run_inline();
    }
    // Release: pairs with the Acquire in `noted`.
    HANDLERS[signal as usize].store(handler, Ordering::Release);
}

/// Returns whether threads cause this signal themselves, by a fault or by `abort`.
fn is_own(signal: c_int) -> bool {
    use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
    matches!(
        signal,
        SIGABRT | SIGBUS | SIGFPE | SIGILL | SIGSEGV | SIGTRAP
    )
}

/// Returns the address of [`dispatch`].
pub(super) fn dispatcher() -> sighandler_t {
    dispatch as *const () as sighandler_t
}

/// Returns whether a value is the address of a function: not `SIG_DFL`, `SIG_IGN`, `SIG_HOLD`,
/// `SIG_ERR`.
pub(super) fn is_function(handler: sighandler_t) -> bool {
    handler > 2 && handler != libc::SIG_ERR
}

/// Returns whether the program may install a handler for `signal`; otherwise libc reports the
/// error.
fn is_ours(signal: c_int) -> bool {
    (1..SIGNALS as c_int).contains(&signal)
        && !matches!(signal, libc::SIGKILL | libc::SIGSTOP | 32 | 33)
}

#[libc_fn]
pub unsafe fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    if !is_ours(signal) || (new.is_null() && old.is_null()) {
        return real_sigaction(signal, new, old);
    }
    // SAFETY: the caller's contract: a valid action, or null.
    let action = unsafe { new.as_ref() };
    if urgent::is_shared(signal) {
        let before = urgent::exchange(action);
        // SAFETY: the caller's contract: valid, or null.
        if let Some(old) = unsafe { old.as_mut() } {
            *old = before;
        }
        return 0;
    }
    // The two steps, the note and the kernel's action, belong together: no handler runs in between,
    // and the thread is not put aside.
    let _section = NoSuspend::new();
    // Read before it is written: the two may be the same.
    let mut copy = action.copied();
    let known = noted(signal);
    let is_in = |set: &AtomicU64| set.load(Ordering::Relaxed) & bit(signal) != 0;
    let (masked, plain) = (is_in(&MASKED), is_in(&PLAIN));
    if let Some(copy) = &mut copy {
        if is_function(copy.sa_sigaction) && copy.sa_sigaction != dispatcher() {
            // Before it is installed, because it may be called at once.
            note(signal, copy.sa_sigaction);
            copy.sa_sigaction = dispatcher();
            ask_for_information(signal, copy);
        }
        mask_preemption(signal, copy);
        default::stand_in(signal, copy);
    }
    let new = copy.as_ref().map_or(ptr::null(), ptr::from_ref);
    let result = real_sigaction(signal, new, old);
    if result == 0 && !old.is_null() {
        let old = &mut *old;
        if old.sa_sigaction == dispatcher() {
            old.sa_sigaction = known;
            if plain {
                old.sa_flags &= !libc::SA_SIGINFO;
            }
        }
        if is_function(old.sa_sigaction) && !masked {
            *masks::bits(&mut old.sa_mask) &= !urgent::BIT;
        }
        default::hide(old);
    }
    result
}

/// libc's `sigaction`.
///
/// # Safety
/// As for libc's function of this name.
pub(super) unsafe fn real_sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    type Sigaction =
        unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
    // SAFETY: the function's signature; the caller's contract.
    unsafe { transmute::<*mut c_void, Sigaction>(SIGACTION.get())(signal, new, old) }
}

/// The signals whose handlers the program itself wants to run with the signal of preemption
/// blocked. Relaxed: for queries only.
static MASKED: AtomicU64 = AtomicU64::new(0);

/// Blocks the signal of preemption in the handler of an action that is about to be installed, and
/// notes whether the program wanted that.
fn mask_preemption(signal: c_int, action: &mut libc::sigaction) {
    if !is_function(action.sa_sigaction) {
        return;
    }
    let mask = masks::bits(&mut action.sa_mask);
    match *mask & urgent::BIT != 0 {
        true => MASKED.fetch_or(bit(signal), Ordering::Relaxed),
        false => MASKED.fetch_and(!bit(signal), Ordering::Relaxed),
    };
    *mask |= urgent::BIT;
}

/// The signals whose handlers the program has installed without `SA_SIGINFO`. Relaxed: for queries
/// only.
static PLAIN: AtomicU64 = AtomicU64::new(0);

/// Has the kernel pass the information and the context to [`dispatch`], and notes whether the
/// program wanted them. Without the flag, AArch64's kernel leaves the registers of these arguments
/// as the interrupted code had them.
fn ask_for_information(signal: c_int, action: &mut libc::sigaction) {
    match action.sa_flags & libc::SA_SIGINFO {
        0 => PLAIN.fetch_or(bit(signal), Ordering::Relaxed),
        _ => PLAIN.fetch_and(!bit(signal), Ordering::Relaxed),
    };
    action.sa_flags |= libc::SA_SIGINFO;
}

/// The signals for which `signal` installs handlers without `SA_RESTART`, as `siginterrupt` has
/// asked.
static INTERRUPTING: AtomicU64 = AtomicU64::new(0);

/// Installs a handler with these flags, or as BSD's `signal` does. Returns the one before.
///
/// # Safety
/// As for `signal`.
unsafe fn by_sigaction(signal: c_int, handler: sighandler_t, flags: Option<c_int>) -> sighandler_t {
    if handler == libc::SIG_ERR || !is_ours(signal) {
        return sys::to_c(Err(Errno(libc::EINVAL))) as sighandler_t; // `SIG_ERR`
    }
    // SAFETY: all zeros is a valid action; the caller's contract.
    unsafe {
        let (mut new, mut old): (libc::sigaction, libc::sigaction) = zeroed();
        new.sa_sigaction = handler;
        new.sa_flags = flags.unwrap_or_else(|| {
            *masks::bits(&mut new.sa_mask) = bit(signal);
            // Relaxed: no other data.
            match INTERRUPTING.load(Ordering::Relaxed) & bit(signal) {
                0 => libc::SA_RESTART,
                _ => 0,
            }
        });
        match sigaction(signal, &new, &mut old) {
            0 => old.sa_sigaction,
            _ => libc::SIG_ERR,
        }
    }
}

#[libc_fn]
pub unsafe fn siginterrupt(signal: c_int, interrupts: c_int) -> c_int {
    let mut action: libc::sigaction = zeroed();
    if sigaction(signal, ptr::null(), &mut action) != 0 {
        return -1;
    }
    // Relaxed, here and below: no other data.
    if interrupts != 0 {
        INTERRUPTING.fetch_or(bit(signal), Ordering::Relaxed);
        action.sa_flags &= !libc::SA_RESTART;
    } else {
        INTERRUPTING.fetch_and(!bit(signal), Ordering::Relaxed);
        action.sa_flags |= libc::SA_RESTART;
    }
    sigaction(signal, &action, ptr::null_mut())
}

/// System V's: blocks the signal, or installs a handler and unblocks it. Returns `SIG_HOLD` if it
/// was blocked, and the handler before otherwise.
#[libc_fn]
pub unsafe fn sigset(signal: c_int, handler: sighandler_t) -> sighandler_t {
    const SIG_HOLD: sighandler_t = 2;
    let (how, mut before) = match handler {
        SIG_HOLD => {
            let mut action: libc::sigaction = zeroed();
            match sigaction(signal, ptr::null(), &mut action) {
                0 => (libc::SIG_BLOCK, action.sa_sigaction),
                _ => return libc::SIG_ERR,
            }
        }
        _ => (libc::SIG_UNBLOCK, by_sigaction(signal, handler, Some(0))),
    };
    if before != libc::SIG_ERR
        && let Some(mask) = masks::change_by(how, bit(signal))
        && mask & bit(signal) != 0
    {
        before = SIG_HOLD;
    }
    before
}

/// Puts a signal off if its handler must not run where the signal has come. Returns whether it did.
///
/// # Safety
/// The arguments of a handler that is running.
unsafe fn put_off(signal: c_int, info: *const siginfo_t, context: *mut c_void) -> bool {
    if !no_suspend::in_section() || bit(signal) & OTHERS == 0 || context.is_null() || carries() {
        return false;
    }
    let action = kernels_action(signal);
    let before = sys::blocked_signals();
    sys::block_only(before | OTHERS);
    let (process, thread) = (std::process::id(), sys::os_thread_id());
    // SAFETY: the kernel's own information, which it accepts from the process that it is for.
    let sent = unsafe { call!(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info) };
    if sent.is_err() {
        sys::block_only(before);
        return false; // No room for one more pending signal.
    }
    install_again(signal, &action);
    // SAFETY: the caller's contract.
    let mut place = unsafe { Interruption::new(context) };
    no_suspend::put_off(place.blocked());
    place.block_only(place.blocked() | OTHERS);
    true
}

/// Returns the action that the kernel knows.
pub(super) fn kernels_action(signal: c_int) -> libc::sigaction {
    // SAFETY: all zeros is a valid action, which libc writes.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        real_sigaction(signal, ptr::null(), &mut action);
        action
    }
}

/// Puts a handler in force again that the kernel has reset before it called it (`SA_RESETHAND`).
/// The kernel resets nothing else of the action.
pub(super) fn install_again(signal: c_int, action: &libc::sigaction) {
    let mut action = *action;
    if action.sa_sigaction == libc::SIG_DFL && action.sa_flags & libc::SA_RESETHAND != 0 {
        action.sa_sigaction = dispatcher();
        // SAFETY: a valid action, which was in force until now.
        unsafe { real_sigaction(signal, &action, ptr::null_mut()) };
    }
}

/// Returns whether the running platform thread carries virtual threads just now.
pub(super) fn carries() -> bool {
    sched::carrier(&NoSuspend::new()).is_some()
}
