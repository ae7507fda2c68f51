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
//! The handler refuses where the thread may hold something of its carrier's, or of libc's:
//! * its [mark](crate::mark) is up, or it asked not to be preempted;
//! * it executes code of libc or of libraries that libc calls ([`code`]);
//! * it runs on another stack than its own, or that has too little room;
//! * it blocks other signals than its carrier: it is in a signal handler, or has changed the mask,
//!   which is the carrier's;
//! * it is traced by itself, or has tiles of AMX or rights of protection keys that would be lost.
//!
//! The monitor then asks again. What cannot be preempted for long is what [spare](super::spare)
//! carriers are for.
//!
//! It is never the handler that switches: the end of a handler restores the alternative stack and
//! the mask of the carrier on which it began, on whichever it ends.

use crate::arch::{self, Interruption, SavedRegisters};
use crate::glibc::code;
use crate::mark::{self, Held, Raised};
use crate::runtime::Runtime;
use crate::sys::{self, Errno};
use crate::vthread::mount::{After, suspend};
use crate::vthread::record::Phase;
use crate::vthread::{self, Carrier, Ready, summons};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The signal that asks. It is ignored by default, so a program that is started by `exec` while one
/// is pending is not harmed.
pub const SIGNAL: c_int = libc::SIGURG;

/// The value that comes with the signal, so that it is not taken for one of the program's.
pub const MARKER: usize = usize::from_ne_bytes(*b"preempt!");

/// Stack for what the trampoline calls, in bytes: twice what an unoptimised build uses.
const ROOM: usize = 6 << 10;

/// The same if it calls handlers of the program, which need what the program gives them.
const ROOM_FOR_HANDLERS: usize = 16 << 10;

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
    PREPARED.store(true, Relaxed); // Relaxed: complete in itself.
    Ok(())
}

/// Takes note of libraries that have been opened or closed.
pub fn libraries_changed() {
    if PREPARED.load(Relaxed) {
        // Failure: libc was found before.
        let _ = code::learn();
    }
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
    if thread.wait.is_summoned() {
        summons::still_hot(); // In case that it cannot be interrupted here.
    }
    if mark::forbids_preemption() {
        return;
    }
    let mark = Raised::new();
    let Some(carrier) = vthread::carrier(&mark) else {
        return;
    };
    // Not on its way into a park: what it runs may park as well.
    let summoned = thread.wait.is_summoned() && !thread.permit.is_parked();
    let needed = if summoned { ROOM_FOR_HANDLERS } else { ROOM };
    // SAFETY: the caller's contract; this function ends before the handler does.
    let mut place = unsafe { Interruption::new(context) };
    let Some(slot) = thread.slot() else { return };
    let room = slot.bottom() + needed + arch::trampoline_bytes()..slot.tp();
    if !(summoned || is_asked(carrier))
        || place.blocked() != carrier.blocked_signals()
        || place.traps()
        || !room.contains(&place.sp())
    {
        return;
    }
    // SAFETY: inside the thread's own stack.
    unsafe {
        if code::may_interrupt(place.pc(), place.sp()) {
            mark.leave_up();
            place.inject();
        }
    }
}

/// Returns whether the thread that a carrier runs has been asked to give way. Not, if a scheduler
/// of the program runs it.
fn is_asked(carrier: &Carrier) -> bool {
    carrier.occupied().is_some_and(|processor| {
        let tick = processor.tick.load(Relaxed); // Relaxed: our own carrier's.
        processor.turn.asked(tick).is_some()
    })
}

/// Suspends the thread until it is its turn again, if it was asked to give way, and runs what it
/// was [summoned](summons) for. Called by the trampoline, with the mark left up.
unsafe extern "C-unwind" fn give_way(place: &mut SavedRegisters) {
    let mark = Raised::adopt();
    let Some(thread) = vthread::current().filter(|_| !arch::has_unsaved_state()) else {
        return;
    };
    let errno = sys::errno();
    if vthread::carrier(&mark).is_some_and(is_asked) {
        suspend(thread, After::Preempt);
    }
    drop(mark);
    // It is the thread's own code that was interrupted: a handler may park, and jump out of here.
    if thread.wait.is_summoned() {
        summons::attend_in_own_code(place);
    }
    sys::set_errno(Errno(errno));
}

/// Calls `f`, in which the running thread is not preempted. If it was to be preempted meanwhile, it
/// gives way at the end.
pub fn without<R>(f: impl FnOnce() -> R) -> R {
    let held = Held::new();
    let result = f();
    drop(held);
    give_way_if_asked();
    result
}

/// Suspends the running thread if it has been asked to give way and could be interrupted here.
fn give_way_if_asked() {
    let Some(thread) = vthread::current().filter(|_| !mark::forbids_preemption()) else {
        return;
    };
    let mark = Raised::new();
    let asked = vthread::carrier(&mark).is_some_and(|carrier| {
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
    thread.core().set_phase(Phase::Runnable);
    let (mut elapsed, mut computes, mut over) = (0, false, false);
    if let Some(processor) = carrier.occupied() {
        let tick = processor.tick.load(Relaxed); // Relaxed: our own carrier's.
        let resumed = processor.turn.resumed(tick);
        computes = resumed.is_some_and(|turn| turn.computes);
        if let Some((reason, since)) = processor.turn.asked(tick) {
            let since = resumed.map_or(since, |turn| turn.since);
            elapsed = sys::now().saturating_sub(since);
            over = reason == super::turn::Reason::Slice;
        }
        processor.set_preempted();
        processor.counters().preempted.add(1);
    }
    runtime.turns.put_aside(thread, elapsed, computes, over);
    runtime.notify();
}

/// Takes the events for which a thread may have been preempted: due timers, ready descriptors, and
/// a thread that came from outside. The threads that they wake are urgent.
#[cold]
pub(super) fn look_around(runtime: &'static Runtime, carrier: &Carrier) {
    carrier.urgently(|| {
        if let Some(thread) = runtime.injector.take_from_outside() {
            runtime.turns.push_urgent(thread);
        }
        runtime.take_events();
    });
}
