//! Installing signal handlers.
//!
//! A handler may interrupt anything: the runtime, with a lock held, or libc, in the middle of
//! `malloc`. The virtual thread that it runs on must not be parked there: the thread would go on
//! with the interrupted code's locks held, perhaps on another carrier, whose signal mask and
//! alternative stack the end of the handler would overwrite. So our handler calls each of the
//! program's, and raises the [mark](pirn_rt::mark): functions called by the handler act as on a
//! platform thread, and may block the carrier.
//!
//! While a handler runs, the signal of preemption is blocked: see [`urgent`]. In a section of the
//! runtime it does not run, but after it: see [`deferred`].
//!
//! This is about handlers that the kernel calls. Those of signals to virtual threads are called at
//! safe points, by [`signals`](crate::signals).
//!
//! Handlers installed by a bare system call are not seen. The same holds for those of a library
//! that `dlmopen` has bound to libc's own functions.

use crate::registry::interposed;
pub(crate) use crate::signals::jumps::__sigsetjmp;
use crate::signals::{alternative, deferred, jumps, quit, raised, urgent};
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use libc::{sighandler_t, siginfo_t};
use pirn_rt::arch;
use pirn_rt::glibc::jump;
use pirn_rt::glibc::symbols::Real;
use pirn_rt::mark::{self, InHandler, Raised};
use pirn_rt::{sched, sys};

interposed! {
    family "Signal handlers" for Correctness,
        cannot "park a virtual thread in the handler of a fault: a blocking call there blocks the \
            carrier";

    Own by hand {
        sigaction, __sigaction,
        signal, bsd_signal, ssignal, __sysv_signal, sysv_signal,
        sigset: "not with `SIG_HOLD` on a virtual thread: the mask would be the carrier's",
        longjmp, _longjmp, siglongjmp, __longjmp_chk: "a handler may be left by a jump",
        __sigsetjmp: "keeps the mask of a virtual thread",
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

/// Calls the program's handler with the mark up; not for a fault of the runtime's own
/// [fetches](arch::recover).
///
/// Unwinds if the handler does.
unsafe extern "C-unwind" fn dispatch(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the context that the kernel gives to each handler, whatever its flags.
    if matches!(signal, libc::SIGSEGV | libc::SIGBUS) && unsafe { arch::recover(context) } {
        return; // The program's handler might not pass on a fault that it does not know.
    }
    // SAFETY: the kernel's own arguments.
    if unsafe { raised::keep(signal, info) } {
        return;
    }
    // SAFETY: the kernel's own arguments. Flags are the kernel's matter.
    unsafe { call(signal, info, context, 0) };
}

/// Calls the program's handler with the mark up, and forgets it first if `flags` say so.
///
/// Unwinds if the handler does.
///
/// # Safety
/// The arguments of a handler that is running; the program has installed one for this signal.
pub(super) unsafe extern "C-unwind" fn call(
    signal: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
    flags: c_int,
) {
    type Handler = unsafe extern "C-unwind" fn(c_int, *mut siginfo_t, *mut c_void);
    // SAFETY: the caller's contract.
    if unsafe { deferred::put_off(signal, info, context) } {
        return;
    }
    let handler = noted(signal);
    if flags & libc::SA_RESETHAND != 0 {
        note(signal, libc::SIG_DFL);
    }
    // SAFETY: the caller's contract.
    let alternative = unsafe { alternative_stack(context) };
    // SAFETY: a handler of the program. One that takes only the signal ignores the other arguments.
    let handler = || unsafe { transmute::<usize, Handler>(handler)(signal, info, context) };
    if !alternative::is_set() {
        return InHandler::run(signal as u16, &alternative, handler);
    }
    let run = |stack: &Range<usize>| InHandler::run(signal as u16, stack, handler);
    // SAFETY: the caller's contract.
    unsafe { alternative::in_fault(context, alternative, run) };
}

/// Returns the alternative signal stack that was in force when a signal came; empty if there was
/// none. To ask the kernel would be too late for one with `SS_AUTODISARM`.
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
        sched::keep_platform_threads();
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

/// Installs `handler` by `install`, which is given the function that the kernel is to call and
/// returns the one it called before. Returns the handler that the program had installed before.
fn exchange(
    signal: c_int,
    handler: sighandler_t,
    install: impl FnOnce(sighandler_t) -> sighandler_t,
) -> sighandler_t {
    let known = noted(signal);
    let mut called = handler;
    if is_function(handler) && handler != dispatcher() {
        // Before it is installed, because it may be called at once.
        note(signal, handler);
        called = dispatcher();
    }
    match install(called) {
        before if before == dispatcher() => known,
        before => before,
    }
}

/// `sigaction`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    if !is_ours(signal) || (new.is_null() && old.is_null()) {
        // SAFETY: the caller's contract.
        return unsafe { real_sigaction(signal, new, old) };
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
    let mut result = 0;
    // Read before it is written: the two may be the same.
    let mut copy = action.copied();
    let masked = Masked::of(signal);
    let before = exchange(
        signal,
        action.map_or(0, |action| action.sa_sigaction),
        |called| {
            if let Some(copy) = &mut copy {
                copy.sa_sigaction = called;
                Masked::add(signal, copy);
                quit::stand_in(signal, copy);
                raised::stand_in(signal, copy);
            }
            let new = copy.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
            // SAFETY: our copy of the action; the caller's contract for `old`.
            unsafe {
                result = real_sigaction(signal, new, old);
                old.as_ref().map_or(0, |old| old.sa_sigaction)
            }
        },
    );
    if result == 0 && !old.is_null() {
        // SAFETY: the caller's contract.
        let old = unsafe { &mut *old };
        old.sa_sigaction = before;
        if is_function(before) && !masked {
            *urgent::bits(&mut old.sa_mask) &= !urgent::BIT;
        }
        quit::hide(old);
        raised::hide(old);
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
/// blocked.
struct Masked;

static MASKED: AtomicU64 = AtomicU64::new(0);

impl Masked {
    /// Returns whether this is one of them.
    fn of(signal: c_int) -> bool {
        MASKED.load(Ordering::Relaxed) & 1 << (signal - 1) != 0 // Relaxed: for queries only.
    }

    /// Blocks the signal of preemption in the handler of an action that is about to be installed,
    /// and notes whether the program wanted that.
    fn add(signal: c_int, action: &mut libc::sigaction) {
        if !is_function(action.sa_sigaction) {
            return;
        }
        let mask = urgent::bits(&mut action.sa_mask);
        let bit = 1 << (signal - 1);
        // Relaxed: as in `of`.
        match *mask & urgent::BIT != 0 {
            true => MASKED.fetch_or(bit, Ordering::Relaxed),
            false => MASKED.fetch_and(!bit, Ordering::Relaxed),
        };
        *mask |= urgent::BIT;
    }
}

/// `__sigaction`: an alias that libc exports.
///
/// # Safety
/// As for `sigaction`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { sigaction(signal, new, old) }
}

/// Defines functions like `signal`, each through libc's own.
macro_rules! like_signal {
    ($($name:ident: $flags:expr,)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(signal: c_int, handler: sighandler_t) -> sighandler_t {
            use pirn_rt::glibc::symbols::real;
            let install = |handler: sighandler_t| {
                // SAFETY: the caller's contract.
                unsafe {
                    real!(fn $name(signal: c_int, handler: sighandler_t) -> sighandler_t)
                }
            };
            match is_ours(signal) {
                // SAFETY: the caller's contract.
                true if is_shared(signal) => unsafe { by_sigaction(signal, handler, $flags) },
                true => exchange(signal, handler, install),
                false => install(handler),
            }
        }
    )*};
}

like_signal! {
    signal: libc::SA_RESTART,
    bsd_signal: libc::SA_RESTART,
    ssignal: libc::SA_RESTART,
    sigset: 0,
}

/// Returns whether the kernel has another action than the program knows.
fn is_shared(signal: c_int) -> bool {
    urgent::is_shared(signal) || quit::is_shared(signal) || raised::is_shared(signal)
}

/// Installs a handler with these flags and an empty mask. Returns the one before.
///
/// # Safety
/// As for `signal`.
unsafe fn by_sigaction(signal: c_int, handler: sighandler_t, flags: c_int) -> sighandler_t {
    // SAFETY: all zeros is a valid action; the caller's contract.
    unsafe {
        let (mut new, mut old): (libc::sigaction, libc::sigaction) = core::mem::zeroed();
        (new.sa_sigaction, new.sa_flags) = (handler, flags);
        match sigaction(signal, &new, &mut old) {
            0 => old.sa_sigaction,
            _ => libc::SIG_ERR,
        }
    }
}

/// Defines functions like System V's `signal`. The handler's own signal is not blocked in it, so
/// the signal of preemption must be from the beginning.
macro_rules! like_sysv_signal {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(signal: c_int, handler: sighandler_t) -> sighandler_t {
            // SAFETY: the caller's contract.
            unsafe { by_sigaction(signal, handler, libc::SA_RESETHAND | libc::SA_NODEFER) }
        }
    )*};
}

like_sysv_signal!(sysv_signal __sysv_signal);

/// Prepares a jump out of handlers to the stack pointer `target`. Ends the process if one of them
/// has interrupted the runtime.
#[cold]
fn leave_handlers(target: usize) {
    // The carrier stays the same until the kernel knows its alternative stack again.
    let _section = Raised::new();
    match mark::jump(target) {
        Ok(true) if !mark::in_handler() => alternative::leave(),
        Ok(_) => {}
        Err(signal) => left_the_runtime(signal),
    }
}

/// Ends the process: its handler of `signal` is about to be left by a jump out of the runtime.
#[cold]
fn left_the_runtime(signal: u16) -> ! {
    let digits = [signal / 10, signal % 10].map(|digit| b'0' + (digit % 10) as u8);
    let number = &digits[usize::from(signal < 10)..];
    sys::fatal(&[
        "the program jumped out of its handler of signal ",
        core::str::from_utf8(number).unwrap_or_default(),
        ", which had interrupted the runtime of virtual threads in the middle of a step. Return \
         from the handler, or block the signal where virtual threads may run",
    ])
}

/// Defines functions like `longjmp`, each through libc's own.
macro_rules! jumps {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(buffer: *mut c_void, value: c_int) -> ! {
            use pirn_rt::glibc::symbols::real;
            // SAFETY: the caller's contract: a buffer that `setjmp` has filled in.
            unsafe {
                if mark::in_handler() {
                    leave_handlers(jump::target(buffer));
                }
                jumps::restore(buffer);
                real!(unwinding fn $name(buffer: *mut c_void, value: c_int) -> !)
            }
        }
    )*};
}

jumps!(longjmp _longjmp siglongjmp __longjmp_chk);
