//! Preemption: taking a thread that computes off its processor.
//!
//! ```text
//!   monitor                    carrier, in the thread's code
//!   ask: request, signal  ->   1. the handler checks whether the thread can be interrupted here
//!                              2. it makes the interrupted code call the trampoline
//!                              3. the trampoline saves all registers and calls `give_way`
//!                              4. suspend(Preempt): back to the carrier's own stack
//!                              5. the thread is put aside; the carrier looks around
//! ```
//!
//! The handler refuses where the thread may hold something that belongs to its carrier or to libc:
//! * it is in a [section](crate::no_suspend), or it asked not to be preempted;
//! * it executes code of libc or of libraries that libc calls ([`code`]);
//! * it runs on another stack than its own, or that has too little room;
//! * it blocks other signals than its carrier: it is in a signal handler, or has changed the mask,
//!   which is the carrier's;
//! * it is traced by itself, or has tiles of AMX or rights of protection keys that would be lost.
//!
//! The monitor then asks again. [Spare](super::spare) carriers stand in for a thread that
//! cannot be preempted for long.
//!
//! The handler itself does not switch: its end (`sigreturn`) would restore the signal mask and the
//! alternate stack of the carrier on which it began on another carrier.
//!
//! * `carriers/policy.rs`: which threads are to give way, and when. The monitor decides.
//! * [`request`]: the monitor's request, as a word of the processor.
//! * [`queues`]: threads that were put aside, and the order in which they go on.

pub(crate) mod queues;
pub(crate) mod request;

use crate::arch::{self, Interruption, SavedRegisters};
use crate::glibc::code;
use crate::no_suspend::{self, NoPreempt, NoSuspend};
use crate::sched::carrier::{Carrier, carrier};
use crate::sched::mount::{After, suspend};
use crate::sched::safepoint;
use crate::sys::{self, Errno};
use crate::vthread::{self, Ready};
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use request::Reason;

/// The signal that asks a thread to give way. Its default action is to do nothing, so it does no
/// harm to a program that is started by `exec` while one is pending.
pub const SIGNAL: c_int = libc::SIGURG;

/// The value that comes with the signal. By it the handler tells the monitor's signal from one of
/// the program's.
pub const MARKER: usize = usize::from_ne_bytes(*b"preempt!");

/// Stack for what the trampoline calls, in bytes: twice what an unoptimised build uses.
const ROOM: usize = 6 << 10;

/// The stack that is needed, in bytes, if the trampoline calls signal handlers of the program: a
/// context that they are given (1 KiB on x86-64, 4.5 KiB on AArch64), and 15 KiB for the rest.
const ROOM_FOR_HANDLERS: usize = size_of::<libc::ucontext_t>().next_multiple_of(1024) + (15 << 10);

/// Whether threads are preempted in this process.
static PREPARED: AtomicBool = AtomicBool::new(false);

/// Prepares preemption.
///
/// # Errors
/// The reason why threads cannot be preempted here.
pub fn prepare() -> Result<(), &'static str> {
    if arch::on_valgrind() {
        return Err("valgrind goes on where the signal came, whatever its handler has changed");
    }
    arch::learn(give_way)?;
    code::learn()?;
    PREPARED.store(true, Relaxed); // Relaxed: carries no other data.
    Ok(())
}

/// Takes note of libraries that have been opened or closed.
pub fn libraries_changed() {
    if PREPARED.load(Relaxed) {
        // Failure: libc was found before.
        let _ = code::learn();
    }
}

/// Returns whether a thread was interrupted in the object that the runtime is part of. Frames of
/// Rust can be unwound from a call, and not from any instruction.
#[inline]
pub fn is_in_own_object(place: &SavedRegisters) -> bool {
    code::is_own(place.pc())
}

/// Makes the interrupted thread give way, if it has been asked to and can be interrupted where it
/// is. Called by the handler of [`SIGNAL`].
///
/// # Safety
/// `context` is the third argument of the handler that is running.
pub unsafe fn interrupt(context: *mut c_void) {
    let Some(thread) = vthread::current() else {
        return;
    };
    if thread.wait.has_request_in_own_code() {
        safepoint::still_hot(); // In case that it cannot be interrupted here.
    }
    if no_suspend::forbids_preemption() {
        return;
    }
    let section = NoSuspend::new();
    let Some(carrier) = carrier(&section) else {
        return;
    };
    let requested = thread.wait.has_request_in_own_code();
    let needed = if requested { ROOM_FOR_HANDLERS } else { ROOM };
    // SAFETY: the caller's contract; this function ends before the handler does.
    let mut place = unsafe { Interruption::new(context) };
    let Some(slot) = thread.slot() else { return };
    let frames = slot.frames();
    let room = frames.start + needed + arch::trampoline_bytes()..frames.end;
    if !(requested || is_asked(carrier))
        || place.blocked() != carrier.blocked_signals()
        || place.cannot_call()
        || !room.contains(&place.sp())
    {
        return;
    }
    if code::may_interrupt(place.pc()) {
        section.leave();
        // SAFETY: inside the thread's own stack.
        unsafe { place.inject() };
    }
}

/// Returns whether the monitor has asked the thread on a carrier to give way. Returns `false` if a
/// scheduler of the program runs the thread.
fn is_asked(carrier: &Carrier) -> bool {
    carrier.occupied().is_some_and(|processor| {
        let tick = processor.tick.load(Relaxed); // Relaxed: our own carrier's.
        processor.request.asked(tick).is_some()
    })
}

/// If the thread was asked to give way, suspends it until a carrier resumes it. Then runs what is
/// [pending](safepoint) for the thread. Called by the trampoline, in a section.
unsafe extern "C-unwind" fn give_way(place: &mut SavedRegisters) {
    let section = NoSuspend::adopt();
    let Some(thread) = vthread::current().filter(|_| !arch::has_unsaved_state()) else {
        return;
    };
    let errno = sys::errno();
    if carrier(&section).is_some_and(is_asked) {
        suspend(thread, After::Preempt);
    }
    drop(section);
    // It is the thread's own code that was interrupted: a handler may park, and jump out of here.
    if thread.wait.has_request_in_own_code() {
        let sp = ptr::from_ref(place).addr();
        match thread.slot() {
            // The request has come while the thread was suspended.
            Some(slot) if sp < slot.bottom() + ROOM_FOR_HANDLERS => safepoint::still_hot(),
            _ => safepoint::run_in_own_code(place),
        }
    }
    sys::set_errno(Errno(errno));
}

/// Calls `f`, in which the running thread is not preempted. If it was to be preempted meanwhile, it
/// gives way at the end.
pub fn without<R>(f: impl FnOnce() -> R) -> R {
    let held = NoPreempt::new();
    let result = f();
    drop(held);
    give_way_if_asked();
    result
}

/// Suspends the running thread if it has been asked to give way and could be interrupted here.
fn give_way_if_asked() {
    let Some(thread) = vthread::current().filter(|_| !no_suspend::forbids_preemption()) else {
        return;
    };
    let section = NoSuspend::new();
    let asked = carrier(&section).is_some_and(|carrier| {
        is_asked(carrier) && sys::blocked_signals() == carrier.blocked_signals()
    });
    if asked {
        suspend(thread, After::Preempt);
    }
}

/// Puts a thread aside that the running carrier has just left by preemption.
#[cold]
pub(crate) fn put_aside(carrier: &Carrier, thread: Ready) {
    let runtime = carrier.runtime();
    let (mut elapsed, mut computes, mut over) = (0, false, false);
    if let Some(processor) = carrier.occupied() {
        let tick = processor.tick.load(Relaxed); // Relaxed: our own carrier's.
        let resumed = processor.request.resumed(tick);
        computes = resumed.is_some_and(|slice| slice.computes);
        if let Some((reason, since)) = processor.request.asked(tick) {
            let since = resumed.map_or(since, |slice| slice.since);
            elapsed = sys::now().saturating_sub(since);
            over = reason == Reason::Slice;
        }
        processor.set_preempted();
        processor.counters().preempted.add(1);
    }
    runtime.preempted.put_aside(thread, elapsed, computes, over);
    runtime.notify();
}
