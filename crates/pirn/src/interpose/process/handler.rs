//! Installing signal handlers.
//!
//! A handler may interrupt anything: the runtime, with a lock held, or libc, in the middle of
//! `malloc`. The virtual thread that it runs on must not be parked there: the thread would go on
//! with the interrupted code's locks held, perhaps on another carrier, whose signal mask and
//! alternative stack the end of the handler would overwrite. So our handler calls each of the
//! program's, and raises the [mark](crate::mark): functions called by the handler act as on a
//! platform thread, and may block the carrier.
//!
//! Handlers installed by a bare system call are not seen. The same holds for those of a library
//! that `dlmopen` has bound to libc's own functions.

use crate::arch;
use crate::glibc::jump;
use crate::glibc::symbols::Real;
use crate::interpose::registry::interposed;
use crate::mark::{self, InHandler};
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};
use libc::{sighandler_t, siginfo_t};

interposed! {
    family "Signal handlers" for Correctness,
        cannot "park a virtual thread in a handler: a blocking call there blocks the carrier";

    Own by hand {
        sigaction, __sigaction,
        signal, bsd_signal, ssignal, __sysv_signal, sysv_signal,
        sigset: "not with `SIG_HOLD` on a virtual thread: the mask is the carrier's",
        longjmp, _longjmp, siglongjmp, __longjmp_chk: "a handler may be left by a jump",
    }
}

/// Signals are numbered from 1 to 64.
const SIGNALS: usize = 65;

/// The program's handlers, by signal; meaningful while [`dispatch`] is installed.
static HANDLERS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];

static SIGACTION: Real = Real::new(c"sigaction");

/// Looks up libc's `sigaction`, which cannot be done in a signal handler.
pub(in crate::interpose) fn prepare() {
    SIGACTION.get();
}

/// Calls the program's handler with the mark up; not for a fault of the runtime's own
/// [fetches](arch::recover).
///
/// Unwinds if the handler does.
unsafe extern "C-unwind" fn dispatch(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    type Handler = unsafe extern "C-unwind" fn(c_int, *mut siginfo_t, *mut c_void);
    // SAFETY: the context that the kernel gives to each handler, whatever its flags.
    if matches!(signal, libc::SIGSEGV | libc::SIGBUS) && unsafe { arch::recover(context) } {
        return; // The program's handler might not pass on a fault that it does not know.
    }
    // Acquire: pairs with the Release in `exchange`: the installer's earlier writes are visible.
    let handler = HANDLERS[signal as usize].load(Ordering::Acquire);
    // SAFETY: a handler of the program. One that takes only the signal ignores the other arguments.
    InHandler::run(|| unsafe { transmute::<usize, Handler>(handler)(signal, info, context) });
}

/// Returns the address of [`dispatch`].
fn dispatcher() -> sighandler_t {
    dispatch as *const () as sighandler_t
}

/// Returns whether a value is the address of a function: not `SIG_DFL`, `SIG_IGN`, `SIG_HOLD`,
/// `SIG_ERR`.
fn is_function(handler: sighandler_t) -> bool {
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
    let known = HANDLERS[signal as usize].load(Ordering::Acquire); // Acquire: as in `dispatch`.
    let mut called = handler;
    if is_function(handler) && handler != dispatcher() {
        // Release: pairs with the Acquire in `dispatch`. Stored before the handler is installed,
        // because it may be called at once.
        HANDLERS[signal as usize].store(handler, Ordering::Release);
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
    type Sigaction =
        unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
    // SAFETY: the function's signature.
    let real = unsafe { transmute::<*mut c_void, Sigaction>(SIGACTION.get()) };
    if !is_ours(signal) || (new.is_null() && old.is_null()) {
        // SAFETY: the caller's contract.
        return unsafe { real(signal, new, old) };
    }
    // SAFETY: the caller's contract: a valid action, or null.
    let action = unsafe { new.as_ref() };
    let mut result = 0;
    // Read before it is written: the two may be the same.
    let mut copy = action.copied();
    let before = exchange(
        signal,
        action.map_or(0, |action| action.sa_sigaction),
        |called| {
            if let Some(copy) = &mut copy {
                copy.sa_sigaction = called;
            }
            let new = copy.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
            // SAFETY: our copy of the action; the caller's contract for `old`.
            unsafe {
                result = real(signal, new, old);
                old.as_ref().map_or(0, |old| old.sa_sigaction)
            }
        },
    );
    if result == 0 && !old.is_null() {
        // SAFETY: the caller's contract.
        unsafe { (*old).sa_sigaction = before };
    }
    result
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
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(signal: c_int, handler: sighandler_t) -> sighandler_t {
            use crate::glibc::symbols::real;
            let install = |handler: sighandler_t| {
                // SAFETY: the caller's contract.
                unsafe {
                    real!(fn $name(signal: c_int, handler: sighandler_t) -> sighandler_t)
                }
            };
            match is_ours(signal) {
                true => exchange(signal, handler, install),
                false => install(handler),
            }
        }
    )*};
}

like_signal!(signal bsd_signal ssignal __sysv_signal sysv_signal sigset);

/// Returns the calling OS thread's alternative signal stack; empty if it has none.
fn alternative_stack() -> core::ops::Range<usize> {
    // SAFETY: all zeros is a valid `stack_t`; a query.
    let stack = unsafe {
        let mut stack: libc::stack_t = core::mem::zeroed();
        libc::sigaltstack(core::ptr::null(), &mut stack);
        stack
    };
    let start = stack.ss_sp as usize;
    start..start + stack.ss_size
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
            use crate::glibc::symbols::real;
            // SAFETY: the caller's contract: a buffer that `setjmp` has filled in.
            unsafe {
                mark::jump(jump::target(buffer), alternative_stack);
                real!(unwinding fn $name(buffer: *mut c_void, value: c_int) -> !)
            }
        }
    )*};
}

jumps!(longjmp _longjmp siglongjmp __longjmp_chk);
