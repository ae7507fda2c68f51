//! Reading the stack of a platform thread that runs: a signal stops it for some ten microseconds.
//!
//! The signal is [preemption](super::preempt)'s; its handler waits until the reader is done.
//! Both sides wait for [`LIMIT_NS`] at most. The handler unwinds nothing: its stack may have 8 KiB.

mod request;

pub use request::Registers;

use super::preempt::SIGNAL;
use crate::arch::Interruption;
use crate::sys;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use request::Request;

/// The value that comes with the signal.
pub const MARKER: usize = usize::from_ne_bytes(*b"getstack");

/// The longest time that the reader and the thread wait for each other.
const LIMIT_NS: u64 = 1_000_000;
/// How often a reader looks whether another one is done.
const PATIENCE: u32 = 200;
/// The number of looks at the request before the thread lets others run.
const SPINS: u32 = 100;

static REQUEST: Request = Request {
    state: AtomicU64::new(0),
    pc: AtomicUsize::new(0),
    sp: AtomicUsize::new(0),
    bp: AtomicUsize::new(0),
    lr: AtomicUsize::new(0),
};

/// Forgets a request of the parent, in the child of a fork that has no runtime yet.
pub(crate) fn after_fork() {
    REQUEST.state.store(0, Relaxed); // Relaxed: there is one thread.
}

/// Calls `read` while a signal stops a platform thread of this process, if the thread answers in
/// time: the handler of the signal must be the one that `pirn` installs. `read` neither allocates
/// nor takes locks. If it takes too long, this function drops what it returns.
///
/// The thread must not be the calling one, and must be running: a signal would end some system
/// calls.
pub fn with<R>(thread: u32, read: impl FnOnce(Registers) -> R) -> Option<R> {
    let patience = (0..PATIENCE).take_while(|round| {
        let asked = REQUEST.ask(thread);
        if !asked {
            sys::back_off(*round);
        }
        !asked
    });
    if patience.count() == PATIENCE as usize {
        return None;
    }
    let asked = Asked;
    sys::send_signal(thread, SIGNAL, MARKER).ok()?;
    let end = sys::now() + LIMIT_NS;
    for round in 0.. {
        if let Some(registers) = REQUEST.registers() {
            let result = read(registers);
            core::mem::forget(asked);
            return REQUEST.release().then_some(result);
        }
        if sys::now() > end {
            break;
        }
        sys::back_off(round);
    }
    None
}

/// A request that has been made, and ends with this.
struct Asked;

impl Drop for Asked {
    fn drop(&mut self) {
        if !REQUEST.withdraw() {
            REQUEST.release();
        }
    }
}

/// Stops, if this thread was asked to. Called by the handler of the signal.
///
/// # Safety
/// `context` is the third argument of the handler that is running.
#[inline]
pub unsafe fn answer(context: *mut c_void) {
    if !REQUEST.is_idle() {
        // SAFETY: the caller's contract.
        unsafe { stop(context) };
    }
}

/// # Safety
/// As for [`answer`].
#[cold]
unsafe fn stop(context: *mut c_void) {
    // SAFETY: the caller's contract; this function ends before the handler does. No arguments.
    let (place, thread) = unsafe {
        let thread = sys::call!(libc::SYS_gettid).unwrap_or(0) as u32;
        (Interruption::new(context), thread)
    };
    let registers = Registers {
        pc: place.pc(),
        sp: place.sp(),
        bp: place.bp(),
        lr: place.lr(),
    };
    if !REQUEST.answer(thread, registers) {
        return;
    }
    let end = sys::now() + LIMIT_NS;
    for round in 0.. {
        if REQUEST.may_go_on(thread) {
            return;
        }
        if sys::now() > end {
            return REQUEST.leave(thread);
        }
        match round {
            0..SPINS => core::hint::spin_loop(),
            _ => sys::os_yield(),
        }
    }
}
