//! Summoning a thread: having it run something on its own stack, at its next safe point.
//!
//! What that is the layers above know ([`set_hook`]): handlers of signals that are pending for the
//! thread, and its end if it is cancelled asynchronously. A summons is a bit in the thread's wait
//! word, and
//!
//! ```text
//!   the thread            is made to run it by
//!   waits                 the end of its wait, with an outcome of its own ([`Outcome::Summoned`])
//!   parks (`park`)        a permit: a spurious return
//!   is about to wait      the bit: the wait does not begin
//!   computes              the signal of preemption, which injects a call (`sched/preempt.rs`)
//!   is runnable, new, or  its next mount, which notes that there is somebody to be interrupted
//!   yields                the bit, when it goes on
//!   waits deaf to it      (`heat`): the monitor then sends the signal until all have answered
//! ```
//!
//! Safe points are where a wait has ended and the thread has left all lists, and where it can be
//! preempted. There the mark is down and the thread holds nothing of the runtime's, so what it runs
//! may park, also on another carrier, and may be left by a jump. It is never run in the handler of
//! a kernel's signal.
//!
//! Nothing of this costs a thread anything that is not summoned: the bit is tested together with
//! the others of its word, a mount looks at `at_mount` in any case.
//!
//! [`Outcome::Summoned`]: crate::blocking::wait::Outcome::Summoned

use super::Claimed;
use super::Current;
use super::mount::current;
use super::record::{Core, Phase};
use super::table;
use crate::arch::SavedRegisters;
use crate::mark::{self, Raised};
use crate::sched::preempt;
use crate::sys;
use core::mem::transmute;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The outcome of a wait that a summons has ended.
pub(crate) const SUMMONED: u32 = 6;

/// What a thread has run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ran {
    /// Nothing that a system call would notice.
    Nothing,
    /// Handlers after which a system call is begun again.
    Restarting,
    /// A handler after which a system call fails with `EINTR`.
    Interrupting,
}

/// Given the running thread, and its registers if it was interrupted in its own code.
type Hook = fn(Current, Option<&mut SavedRegisters>) -> Ran;

/// The [`Hook`]; null: there is nothing to run.
static HOOK: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets what a summoned thread runs.
#[inline]
pub fn set_hook(hook: Hook) {
    // Release: pairs with the Acquire in `attend`.
    HOOK.store(hook as *mut (), Ordering::Release);
}

/// Called with a thread that ends while signals are pending for it; null: nothing to do.
static END: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets what is done when a thread ends while signals are pending for it.
#[inline]
pub fn set_end_hook(hook: fn(&Core)) {
    // Release: pairs with the Acquire in `give_up`.
    END.store(hook as *mut (), Ordering::Release);
}

/// Gives up what is pending for a thread that has ended.
#[inline]
pub(super) fn end(thread: &Core) {
    if thread.signals.any_pending() {
        give_up(thread);
    }
}

#[cold]
fn give_up(thread: &Core) {
    // Acquire: pairs with the Release in `set_end_hook`.
    let hook = END.load(Ordering::Acquire);
    if !hook.is_null() {
        // SAFETY: from `set_end_hook`.
        unsafe { transmute::<*mut (), fn(&Core)>(hook)(thread) };
    }
}

/// Runs what the running thread was summoned for. Called at a safe point.
#[cold]
pub fn attend() -> Ran {
    attend_at(None)
}

/// Does the same where the running thread was interrupted in its own code: what it runs may then
/// also unwind its stack.
#[cold]
pub(crate) fn attend_in_own_code(place: &mut SavedRegisters) {
    attend_at(Some(place));
}

fn attend_at(mut place: Option<&mut SavedRegisters>) -> Ran {
    let Some(thread) = current() else {
        return Ran::Nothing;
    };
    debug_assert!(!mark::is_up() || mark::in_handler());
    let mut ran = Ran::Nothing;
    // Acquire: pairs with the Release in `set_hook`.
    let hook = HOOK.load(Ordering::Acquire);
    while thread.wait.answer() {
        if !hook.is_null() {
            // SAFETY: from `set_hook`.
            let hook = unsafe { transmute::<*mut (), Hook>(hook) };
            ran = ran.max(hook(thread, place.as_deref_mut()));
        }
        if thread.signals.any_awaited() {
            // The thread was interrupted on its way into the wait for that, or just has left it:
            // the wait must not begin.
            note_own(thread);
            break;
        }
    }
    ran
}

/// Runs it if the running thread has been summoned. Called at a safe point.
#[inline]
pub fn attend_if_summoned() -> Ran {
    match current() {
        Some(thread) if thread.wait.is_summoned() => attend(),
        _ => Ran::Nothing,
    }
}

/// Summons a thread. Not to be called under a lock, nor by a signal handler that may have
/// interrupted one: this may wake the thread.
///
/// What it is to run has been published before, by a sequentially consistent write.
pub fn summon(thread: &Core) {
    let mark = Raised::new();
    let effect = thread.wait.summon(SUMMONED);
    let pointer = NonNull::from(thread);
    if effect.ended.is_some() {
        // SAFETY: decided by us.
        return unsafe { Claimed::new(pointer, mark) }.wake();
    }
    if !effect.first {
        return;
    }
    if thread.permit.unpark() {
        // SAFETY: the permit has given us the duty to wake the thread.
        return unsafe { Claimed::new(pointer, mark) }.wake();
    }
    thread.at_mount.time(sys::now());
    heat(thread.runtime());
    // It may be mounted elsewhere by now: then the monitor finds it.
    if thread.phase() == Phase::Running
        && let Some(number) = thread.carrier_number()
        && let Some(platform) = table::platform_of(number)
    {
        interrupt(platform);
    }
}

/// Notes that the running thread has something to run. It [attends](attend) soon by itself.
#[inline]
pub fn note_own(thread: Current) {
    // It is in no wait that could end.
    let _ = thread.wait.summon(SUMMONED);
}

/// The time until which the monitor sends signals to carriers.
static HOT_UNTIL: AtomicU64 = AtomicU64::new(0);
/// How long a summons keeps it at that.
const HOT_NS: u64 = 500_000_000;

/// Has the monitor interrupt the threads that run, for a while: one of them has been summoned.
#[inline]
pub(crate) fn heat(runtime: &crate::runtime::Runtime) {
    still_hot();
    runtime.doze.stir();
}

/// Does the same where the monitor is awake. For signal handlers.
#[inline]
pub(crate) fn still_hot() {
    // SeqCst: in one order with the monitor's sleep, as `stir` asks for.
    HOT_UNTIL.swap(sys::now() + HOT_NS, Ordering::SeqCst);
}

/// Returns whether the monitor is to interrupt threads.
#[inline]
pub(crate) fn is_hot() -> bool {
    let until = HOT_UNTIL.load(Ordering::Relaxed); // Relaxed: ordered by the fence in `doze`.
    until != 0 && sys::now() < until
}

/// Interrupts all threads that run. The monitor calls this while it [is hot](is_hot).
#[inline]
pub(crate) fn interrupt_all() {
    for carrying in table::carriers().filter(|carrying| carrying.busy) {
        interrupt(carrying.platform);
    }
}

/// Asks the thread that a platform thread carries to answer, if it was summoned.
fn interrupt(platform: u32) {
    // Failure: the platform thread has ended.
    let _ = sys::send_signal(platform, preempt::SIGNAL, preempt::MARKER);
}
