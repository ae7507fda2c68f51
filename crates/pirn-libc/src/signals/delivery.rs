//! Delivering signals to the running virtual thread: on its own stack, at a safe point.

use crate::signals::{alternative, default, handler, jumps, masks, process_wide, sending};
use crate::{cancel, virtual_thread};
use core::cell::Cell;
use core::ffi::c_long;
use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, transmute, zeroed};
use core::ptr;
use core::sync::atomic::Ordering::SeqCst;
use libc::{siginfo_t, ucontext_t};
use pirn_rt::arch::{self, SavedRegisters};
use pirn_rt::no_suspend::{self, NoSuspend};
use pirn_rt::sched::preempt;
use pirn_rt::sched::safepoint::{self, Ran};
use pirn_rt::sys::{self, call};
use pirn_rt::sys::{Errno, SysResult};
use pirn_rt::vthread::Current;
use pirn_rt::vthread::signals::{NEVER_BLOCKED, RAISED, bit};

thread_local! {
    /// The number of handlers that the thread has begun.
    static BEGUN: Cell<u64> = const { Cell::new(0) };
}

/// Returns how many handlers the running thread has begun.
pub(crate) fn begun() -> u64 {
    BEGUN.get()
}

/// Delivers what is pending for the running thread and not blocked, before its function returns.
pub fn at_once() {
    if !no_suspend::is_on() || no_suspend::in_handler() {
        safepoint::run_if_requested();
    }
}

/// Delivers the signals that are pending for the running thread. `place` has the registers of the
/// thread if it was interrupted in its own code, where it may also act on a cancellation. Returns
/// with what it has run whether a cancellation is left, for another instruction.
pub(super) fn deliver(thread: Current, mut place: Option<&mut SavedRegisters>) -> (Ran, bool) {
    let is_left = match &place {
        Some(place) if !preempt::is_in_own_object(place) => {
            // SAFETY: the frames up to the thread's own code have nothing to drop.
            unsafe { cancel::at_any_instruction() };
            false
        }
        _ => cancel::is_due_anywhere(),
    };
    let mut ran = Ran::Nothing;
    loop {
        process_wide::look_again(thread.signals.wanted());
        // Until the handler's mask is in force: another delivery here, by the signal of preemption,
        // would see the mask, and what is pending, between two steps.
        let section = NoSuspend::new();
        let ready = thread.signals.deliverable();
        if ready == 0 {
            return (ran, is_left);
        }
        let signal = ready.trailing_zeros() as c_int + 1;
        let Some(mut info) = sending::take(&thread, signal) else {
            continue;
        };
        let action = action(signal);
        match action.sa_sigaction {
            libc::SIG_IGN => {}
            libc::SIG_DFL => take_default(signal),
            _ => {
                let place = place.as_deref_mut();
                // SAFETY: the program's action.
                let others =
                    unsafe { call_handler(thread, signal, &action, &mut info, place, section) };
                let own = match action.sa_flags & libc::SA_RESTART {
                    0 => Ran::Interrupting,
                    _ => Ran::Restarting,
                };
                ran = ran.max(others).max(own);
            }
        }
    }
}

/// Returns the program's action.
fn action(signal: c_int) -> libc::sigaction {
    // SAFETY: all zeros is a valid action, and read into.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        handler::sigaction(signal, ptr::null(), &mut action);
        action
    }
}

/// Calls a handler of the program, on the stack of the running thread, outside of all sections.
/// Handlers of other signals that are pending run before it, on top of it: so does the kernel, and
/// the handler may wait for one of them. Returns what these were.
///
/// While it runs, the thread awaits no signal: the handler may begin a wait of its own. The handler
/// is given the context of `place`, or, in a call that waits, the context of this function.
///
/// # Safety
/// The action is in force.
unsafe fn call_handler(
    thread: Current,
    signal: c_int,
    action: &libc::sigaction,
    info: &mut siginfo_t,
    place: Option<&mut SavedRegisters>,
    section: NoSuspend,
) -> Ran {
    type Handler = unsafe extern "C-unwind" fn(c_int, *mut siginfo_t, *mut c_void);
    if action.sa_flags & libc::SA_RESETHAND != 0 {
        // SAFETY: all zeros is a valid action, the default one.
        unsafe {
            let default: libc::sigaction = zeroed();
            handler::sigaction(signal, &default, ptr::null_mut());
        }
    }
    let before = thread.signals.mask.load(SeqCst);
    let own = match action.sa_flags & libc::SA_NODEFER {
        0 => bit(signal),
        _ => 0,
    };
    let mut context = MaybeUninit::<ucontext_t>::zeroed();
    // SAFETY: room for a context, which is filled in.
    let shown = unsafe {
        jumps::get(context.as_mut_ptr());
        context.assume_init_mut()
    };
    *masks::bits(&mut shown.uc_sigmask) = before;
    if let Some(place) = place.as_deref() {
        place.show(shown);
    }
    let mask = (before | own | masks::bits_of(&action.sa_mask)) & !NEVER_BLOCKED;
    thread.signals.mask.store(mask, SeqCst);
    let awaited = thread.signals.awaited.swap(0, SeqCst);
    BEGUN.set(BEGUN.get() + 1);
    drop(section);
    let (others, _) = deliver(thread, None);
    // SAFETY: a handler of the program. One that takes only the signal ignores the rest.
    let mut handler = || unsafe {
        arch::begin_float();
        let handler = transmute::<usize, Handler>(action.sa_sigaction);
        handler(signal, info, context.as_mut_ptr().cast());
    };
    match action.sa_flags & libc::SA_ONSTACK {
        0 => handler(),
        // SAFETY: a handler of the program.
        _ => unsafe { alternative::call_on_own(handler) },
    }
    // What the handler has changed there.
    // SAFETY: filled in above.
    let context = unsafe { context.assume_init_mut() };
    // SAFETY: filled in above.
    unsafe { arch::end_float(context) };
    if let Some(place) = place {
        place.change(context);
    }
    let after = masks::bits_of(&context.uc_sigmask) & !NEVER_BLOCKED;
    thread.signals.mask.store(after, SeqCst);
    // `run_pending` looks for signals that have come to the thread meanwhile.
    thread.signals.awaited.store(awaited, SeqCst);
    others
}

/// The signals whose default action is to do nothing.
const IGNORED: u64 =
    bit(libc::SIGCHLD) | bit(libc::SIGURG) | bit(libc::SIGWINCH) | bit(libc::SIGCONT);

/// Makes the kernel take the default action, which concerns the process: sends the signal to this
/// OS thread, which unblocks it meanwhile.
fn take_default(signal: c_int) {
    if bit(signal) & IGNORED != 0 {
        return;
    }
    let _section = NoSuspend::new();
    if bit(signal) & RAISED != 0 && default::is_shared(signal) {
        return default::take_default(signal);
    }
    let blocked = sys::blocked_signals();
    let (thread, process) = (sys::os_thread_id(), std::process::id());
    // Delivered at the end of the second call.
    // SAFETY: no pointers.
    let _ = unsafe { call!(libc::SYS_tgkill, process, thread, signal) };
    sys::block_only(blocked & !bit(signal));
    sys::block_only(blocked);
}

/// Makes a system call that no function here stands for. On a virtual thread, makes the call again
/// if a signal of the runtime has ended it, as the signal for time slices ends `io_uring_enter`: a
/// program does not expect `EINTR` when no handler of its own has run.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn kernels(number: c_long, args: [usize; 6]) -> SysResult {
    let before = begun();
    loop {
        // SAFETY: the caller's contract.
        let result = sys::check(unsafe { arch::syscall(number, args) });
        if result != Err(Errno(libc::EINTR)) || virtual_thread().is_none() {
            return result;
        }
        at_once();
        if begun() != before {
            return result;
        }
    }
}
