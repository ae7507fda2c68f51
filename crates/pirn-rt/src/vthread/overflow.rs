//! Telling a stack overflow from other faults, and naming the thread.
//!
//! This works as in `std` for platform threads. A handler on the alternative signal stack (which
//! belongs to the carrier) checks whether the faulting address is in the guard of the mounted
//! virtual thread. If so it reports the thread and aborts; otherwise the previous handler takes
//! over.
//!
//! A program that knows nothing of virtual threads may have a handler that copes with overflows of
//! its threads: OCaml's makes an exception of them. There the previous handler always takes over.

use super::current;
use super::record::Core;
use crate::arch;
use crate::stack::{MOST_LARGE, SizeClass};
use crate::sys::{self, FixedText, call};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::fmt::Write;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

struct Previous(UnsafeCell<[MaybeUninit<libc::sigaction>; 2]>);
// SAFETY: written once by `install`, before the handlers that read it are in place.
unsafe impl Sync for Previous {}
static PREVIOUS: Previous = Previous(UnsafeCell::new([MaybeUninit::uninit(); 2]));
const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// Whether handlers of the program that run on an alternative stack are asked first.
static IS_SECOND: AtomicBool = AtomicBool::new(false);

/// Installs the handler. Called once, at start. `second`: whether the program's own threads are
/// virtual, so that its handlers know what to do with them.
pub fn install(second: bool) {
    IS_SECOND.store(second, Ordering::Relaxed); // Relaxed: published with the handler.
    for (i, signal) in SIGNALS.into_iter().enumerate() {
        // SAFETY: single-threaded by the runtime's start lock; the previous action is stored
        // before ours can run.
        unsafe {
            let previous = (&raw mut (*PREVIOUS.0.get())[i]).cast::<libc::sigaction>();
            libc::sigaction(signal, core::ptr::null(), previous);
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = on_fault as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigaction(signal, &action, core::ptr::null_mut());
        }
    }
}

/// Gives the calling OS thread an alternative signal stack for handlers of any program: `std`'s has
/// some 10 KiB, of which the kernel's frame takes a third. `main` keeps what it has.
pub(crate) fn ensure_signal_stack() {
    /// Bytes that handlers have, beside the kernel's frame, and of the whole at least.
    const HANDLERS: usize = 48 << 10;
    const LEAST: usize = 64 << 10;
    // SAFETY: getauxval has no preconditions.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize; // 0 if it does not say.
    let size = LEAST.max(frame + HANDLERS);
    // SAFETY: plain queries and a fresh mapping that is never freed, because the thread may live as
    // long as the process.
    unsafe {
        let mut old: libc::stack_t = core::mem::zeroed();
        let _ = call!(libc::SYS_sigaltstack, 0, &raw mut old);
        let is_main = sys::is_first_thread();
        if old.ss_flags & libc::SS_DISABLE == 0 && (is_main || old.ss_size >= size) {
            return;
        }
        if let Ok(memory) = sys::map(size, 0) {
            let new = libc::stack_t {
                ss_sp: memory as *mut c_void,
                ss_flags: 0,
                ss_size: size,
            };
            let _ = call!(libc::SYS_sigaltstack, &raw const new, 0);
        }
    }
}

/// Handles a fault, on the mounted virtual thread's TLS.
unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the context is the kernel's own, and this is the handler.
    if unsafe { arch::recover(context) } {
        return;
    }
    // SAFETY: the kernel passes a valid siginfo for SA_SIGINFO handlers.
    let address = unsafe { (*info).si_addr() } as usize;
    if let Some(thread) = current()
        && let Some(slot) = thread.slot()
        && (slot.base()..slot.bottom()).contains(&address)
        && !program_copes(signal)
    {
        report(&thread, slot.class());
    }
    // SAFETY: stored by `install` before this handler was in place.
    unsafe { pass_on(signal, info, context) };
}

/// Returns whether a handler of the program must see overflows of virtual threads. A handler
/// without an alternative stack would not see them natively.
fn program_copes(signal: c_int) -> bool {
    // Relaxed: written before the handler that reads it was in place.
    IS_SECOND.load(Ordering::Relaxed) && {
        let previous = previous(signal);
        !matches!(previous.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
            && previous.sa_flags & libc::SA_ONSTACK != 0
    }
}

/// Returns what the program had installed before.
fn previous(signal: c_int) -> libc::sigaction {
    let index = usize::from(signal != SIGNALS[0]);
    // SAFETY: stored by `install` before the handlers that ask were in place.
    unsafe { (*PREVIOUS.0.get())[index].assume_init() }
}

fn report(thread: &Core, class: SizeClass) -> ! {
    let mut text = FixedText::new();
    let _ = write!(
        text,
        "\nvirtual thread #{} '{}' has overflowed its stack\n\
         fatal runtime error: stack overflow \
         (stack size {} KiB; set Builder::stack_size or PIRN_STACK_SIZE), aborting\n",
        thread.id(),
        thread.name().unwrap_or("<unnamed>"),
        class.stack_bytes() / 1024,
    );
    if class == SizeClass::SMALL {
        let _ = writeln!(
            text,
            "(it was not among the first {} threads alive, which have {} KiB each)",
            MOST_LARGE,
            SizeClass::LARGE.stack_bytes() / 1024,
        );
    }
    sys::complain(&[text.as_str()]);
    // SAFETY: always allowed.
    unsafe { libc::abort() }
}

/// Calls the previous handler, or lets the fault happen again with the default one.
unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = previous(signal);
    // SAFETY: the previous action's own contract for its signature.
    unsafe {
        match previous.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                libc::sigaction(signal, &previous, core::ptr::null_mut());
            }
            handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
                let f: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    core::mem::transmute(handler);
                f(signal, info, context);
            }
            handler => {
                let f: extern "C" fn(c_int) = core::mem::transmute(handler);
                f(signal);
            }
        }
    }
}
