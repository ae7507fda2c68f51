//! Requests to a thread to run something on its own stack, at its next safe point.
//!
//! The layers above decide what to run ([`set_hook`]): handlers of signals that are pending for the
//! thread, and its end if it is cancelled asynchronously. A request is a bit in the thread's wait
//! word. The thread comes to look at it in one of these ways:
//!
//! ```text
//!   the thread            is made to run it by
//!   waits                 the end of its wait, with an outcome of its own ([`Outcome::SafePoint`])
//!   parks (`park`)        a permit: a spurious return
//!   is about to wait      the bit: the wait does not begin
//!   computes              the signal of preemption, which injects a call (`sched/preempt/`)
//!   is runnable, new, or  its next mount, which notes that there is a thread to be interrupted
//!   yields                the bit, when it goes on
//!   waits elsewhere       (`heat`): the monitor then sends the signal until all have taken it
//! ```
//!
//! What unwinds the stack is run only where the thread has been interrupted in its own code. If it
//! is requested elsewhere, it is left for there, and the thread's waits go on.
//!
//! Safe points are where a wait has ended and the thread has left all lists, and where it can be
//! preempted. There the thread is in no section and holds nothing of the runtime's, so what it runs
//! may park, also on another carrier, and may be left by a jump. It is never run in the handler of
//! a kernel's signal.
//!
//! A thread without a request pays nothing: a wait tests the bit together with the others of its
//! word, and a mount looks at `mount_flags` in any case.
//!
//! [`Outcome::SafePoint`]: crate::blocking::wait::Outcome::SafePoint

use super::runtime::Runtime;
use super::{carrier, preempt, wake};
use crate::arch::SavedRegisters;
use crate::no_suspend::{self, NoSuspend};
use crate::sys;
use crate::vthread::{Claimed, Core, Current, current};
use core::mem::transmute;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The outcome of a wait that a request has ended.
pub(crate) const SAFE_POINT: u32 = 6;

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

/// Runs what is pending for the running thread. It is given the thread, and the thread's registers
/// if the thread was interrupted in its own code. Returns with it whether something is left that
/// cannot be run at this instruction.
type Hook = fn(Current, Option<&mut SavedRegisters>) -> (Ran, bool);

/// The [`Hook`]; null: there is nothing to run.
static HOOK: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets what a thread runs at a requested safe point.
#[inline]
pub fn set_hook(hook: Hook) {
    // Release: pairs with the Acquire in `run_pending`.
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
pub(crate) fn end(thread: &Core) {
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

/// Runs what is pending for the running thread. Called at a safe point.
#[cold]
pub fn run_pending() -> Ran {
    run_at(None)
}

/// Does what [`run_pending`] does, in a thread that was interrupted in its own code: what it runs
/// may then also unwind its stack.
#[cold]
pub(crate) fn run_in_own_code(place: &mut SavedRegisters) {
    run_at(Some(place));
}

fn run_at(mut place: Option<&mut SavedRegisters>) -> Ran {
    let Some(thread) = current() else {
        return Ran::Nothing;
    };
    debug_assert!(!no_suspend::is_on() || no_suspend::in_handler());
    let mut ran = Ran::Nothing;
    // Acquire: pairs with the Release in `set_hook`.
    let hook = HOOK.load(Ordering::Acquire);
    let is_own_code = place.is_some();
    let is_requested = || match is_own_code {
        true => thread.wait.take_request_in_own_code(),
        false => thread.wait.take_request(),
    };
    while is_requested() {
        if !hook.is_null() {
            // SAFETY: from `set_hook`.
            let hook = unsafe { transmute::<*mut (), Hook>(hook) };
            let (more, is_left) = hook(thread, place.as_deref_mut());
            ran = ran.max(more);
            if is_left {
                // The monitor interrupts the thread again, some steps further on.
                thread.wait.leave_request();
                note_left(&thread);
                break;
            }
        }
        if thread.signals.any_awaited() {
            // The thread was interrupted on its way into the wait for that signal, or has just left
            // the wait: it must not begin to wait.
            note_own(thread);
            break;
        }
    }
    ran
}

/// Runs what is pending for the running thread if a safe point was requested. Called at a safe
/// point.
#[inline]
pub fn run_if_requested() -> Ran {
    match current() {
        Some(thread) if thread.wait.safe_point_requested() => run_pending(),
        _ => Ran::Nothing,
    }
}

/// Requests a safe point of a thread. Not to be called under a lock, nor by a signal handler that
/// may have interrupted one: this may wake the thread.
///
/// The caller has published what the thread is to run, by a sequentially consistent write.
pub fn request(thread: &Core) {
    let section = NoSuspend::new();
    let effect = thread.wait.request_safe_point(SAFE_POINT);
    let pointer = NonNull::from(thread);
    if effect.ended.is_some() {
        // SAFETY: decided by us.
        return wake(unsafe { Claimed::new(pointer, section) });
    }
    if !effect.first {
        return;
    }
    if thread.permit.unpark() {
        // SAFETY: the permit has given us the duty to wake the thread.
        return wake(unsafe { Claimed::new(pointer, section) });
    }
    thread.mount_flags.time(sys::now());
    heat(Runtime::of(thread));
    // It may be mounted elsewhere by now: then the monitor finds it.
    if let Some(number) = thread.carrier_number()
        && let Some(platform) = carrier::platform_of(number)
    {
        interrupt(platform);
    }
}

/// Requests a safe point of the running thread, which soon [takes](run_pending) the request by
/// itself: no waker and no interrupt is needed.
#[inline]
pub fn note_own(thread: Current) {
    // It is in no wait that could end.
    let _ = thread.wait.request_safe_point(SAFE_POINT);
}

/// Makes the monitor interrupt a thread that has something to run in its own code, and the thread's
/// next mount do the same.
pub(crate) fn note_left(thread: &Core) {
    thread.mount_flags.time(sys::now());
    heat(Runtime::of(thread));
}

/// The time until which the monitor sends signals to carriers.
static HOT_UNTIL: AtomicU64 = AtomicU64::new(0);
/// How long the monitor sends signals after a request.
const HOT_NS: u64 = 500_000_000;

/// Makes the monitor interrupt the threads that run, for a while: one of them has a request.
#[inline]
pub(crate) fn heat(runtime: &Runtime) {
    still_hot();
    runtime.monitor.wake();
}

/// Does what [`heat`] does, but does not wake the monitor. For signal handlers.
#[inline]
pub(crate) fn still_hot() {
    // Relaxed, and a read-modify-write: ordered by the fence in `Sleeper::wake`.
    HOT_UNTIL.swap(sys::now() + HOT_NS, Ordering::Relaxed);
}

/// Returns whether the monitor is to interrupt threads.
#[inline]
pub(crate) fn is_hot() -> bool {
    let until = HOT_UNTIL.load(Ordering::Relaxed); // Relaxed: ordered by the monitor's fence.
    until != 0 && sys::now() < until
}

/// Interrupts all threads that run. The monitor calls this while it [is hot](is_hot).
#[inline]
pub(crate) fn interrupt_all() {
    for carrying in carrier::carriers().filter(|carrying| carrying.busy) {
        interrupt(carrying.platform);
    }
}

/// Interrupts the thread that a platform thread carries, if it has a request.
fn interrupt(platform: u32) {
    // Failure: the platform thread has ended.
    let _ = sys::send_signal(platform, preempt::SIGNAL, preempt::MARKER);
}
