//! The scheduler: which virtual thread runs next, and on which carrier.
//!
//! [`schedule`] takes the right to run a thread ([`Ready`]) whenever a thread becomes runnable. If
//! the program has given the thread a scheduler, it passes the right to that scheduler. Carriers
//! run all other threads, and steal work from each other:
//!
//! * [`runtime`]: a runtime, through which the other parts reach each other.
//! * [`processor`]: the right to run threads, with a queue of them ([`local_queue`]).
//!   [`injector`]: the queue for everything that comes from outside ([`ready_queue`]).
//! * [`carrier`](mod@carrier): the platform threads that threads are mounted on. [`mount`]: getting
//!   on and off; [`life`]: a thread's first and last moments; [`foreign`]: platform threads of the
//!   program.
//! * [`body`]: the closure that a thread runs, and its result; [`magazines`]: memory for threads.
//! * [`idle`]: how few carriers are woken. [`spare`]: processors for when all others are stuck, and
//!   [`stuck`]: what the monitor has found about those.
//! * [`simulation`]: what decides in the scheduler's place in a simulation.
//! * [`preempt`]: taking threads that compute off their processors. [`safepoint`]: requests to a
//!   thread to run something. `current_stack`: stopping a carrier while its stack is read.
//! * [`counters`], [`cpu_time`], `run`, [`recorded`]: what is counted, timed and recorded.
//!   [`os_thread`]: what the kernel says of a carrier. [`deferred`]: requests of signal handlers.
//!
//! What carriers do with all of it is a layer [above](crate::carriers).

pub mod body;
pub mod carrier;
pub mod counters;
pub mod cpu_time;
#[cfg(feature = "dump")]
pub mod current_stack;
pub mod deferred;
mod foreign;
pub(crate) mod idle;
pub(crate) mod injector;
pub mod life;
pub(crate) mod local_queue;
pub mod magazines;
pub mod mount;
pub mod os_thread;
pub mod preempt;
pub(crate) mod processor;
pub mod ready_queue;
pub mod recorded;
mod run;
pub mod runtime;
pub mod safepoint;
pub mod simulation;
pub mod spare;
pub mod stuck;

pub use body::ClosureBody;
pub use carrier::{Carrier, carrier, on_carrier};
pub use foreign::{abandon, carrier_name, help_join, never_run_inline, run_inline};
pub use life::{run_destructors, set_end_in_child};
pub(crate) use processor::{Acquired, Holder};
pub use processor::{Processor, next_id};
pub use runtime::Runtime;

use crate::no_suspend::{self, NoSuspend};
use crate::recorder;
use crate::stack::Slot;
use crate::sys;
use crate::vthread::{Claimed, Core, Current, Ready, current, table};
use core::ptr::{self, NonNull};
pub use counters::Cause;
use mount::After;
use simulation::Point;

/// Puts a thread that became runnable for this `cause` where a carrier finds it: the queue of the
/// calling thread's processor, the injector, or the scheduler that the program gave it.
#[inline(always)]
pub fn schedule(thread: Ready, cause: Cause) {
    if cause == Cause::Start && recorder::is_on() {
        recorded::spawned(thread.core());
    }
    if no_suspend::in_handler() {
        return post(thread, cause);
    }
    {
        let section = NoSuspend::new();
        let processor = carrier(&section).and_then(|carrier| carrier.processor());
        enqueue(processor, thread, cause);
    }
    if cause == Cause::Start {
        simulation::point(Point::Spawn);
    }
}

/// Does what [`schedule`] does, for a caller that knows the processor that its carrier holds.
#[inline(always)]
pub(crate) fn enqueue(processor: Option<Holder<'_>>, thread: Ready, cause: Cause) {
    match processor {
        Some(processor) if thread.core().is_queued_in(processor.runtime().queues()) => {
            if processor.counters().runnable(cause) {
                cold(|| time(&thread));
            }
            let len = processor.enqueue(thread);
            let runtime = processor.runtime();
            match len {
                0 | 1 => {}
                2..=idle::FEW => runtime.idle.notify_of_few(|| runtime.poller.kick()),
                _ => runtime.notify(),
            }
        }
        _ => inject(thread, cause),
    }
}

/// Schedules a thread that cannot go to the queue of the calling thread's processor: it has a
/// scheduler of its own, or another runtime, or the caller holds no processor.
#[inline(never)]
fn inject(thread: Ready, cause: Cause) {
    if Runtime::of(thread.core()).outside.runnable_shared(cause) {
        time(&thread);
    }
    // Cloned, because the thread may have ended before the call of the scheduler returns.
    if let Some(scheduler) = thread.core().scheduler().cloned() {
        return foreign::dispatch(scheduler, thread);
    }
    let runtime = Runtime::of(thread.core());
    let section = NoSuspend::new();
    if let Some(simulator) = runtime.settings.simulator {
        simulator.runnable(thread, cause);
        if carrier(&section).is_none() {
            runtime.poller.kick(); // The carrier may wait for descriptors.
        }
        return;
    }
    let is_urgent = |carrier: &Carrier| carrier.is_urgent() && ptr::eq(carrier.runtime(), runtime);
    match carrier(&section).is_some_and(is_urgent) {
        true => runtime.preempted.push_urgent(thread),
        false => runtime.injector.push_from_outside(thread),
    }
    runtime.notify();
}

/// Schedules a thread for a signal handler, which may have interrupted a change of a queue: the
/// next carrier that looks for events enqueues the thread.
#[cold]
fn post(thread: Ready, cause: Cause) {
    let runtime = Runtime::of(thread.core());
    runtime.outside.runnable_shared(cause);
    runtime.injector.post(thread);
    runtime.poller.kick();
}

/// Wakes the thread, which goes on a run queue as soon as it is off its stack.
#[inline]
pub fn wake(claimed: Claimed) {
    let (thread, _section) = claimed.into_raw();
    // SAFETY: it waits for this very wake, so it is alive.
    let core = unsafe { thread.as_ref() };
    if recorder::is_on() {
        recorded::woken(core);
    }
    core.continuation.order_before();
    if core.handshake.wake() {
        // SAFETY: the handshake gave us the duty to enqueue it.
        schedule(unsafe { Ready::new(thread) }, Cause::Wake);
    }
}

/// Wakes a thread, and lets it run in place of the running thread, which goes to the back of its
/// queue. A caller that is a platform thread naps instead. Only wakes the thread if the running one
/// must not be preempted just now, or if `may`, which is given the processor, returns `false`.
#[cold]
pub(crate) fn wake_in_place(claimed: Claimed, may: impl FnOnce(Option<Holder<'_>>) -> bool) {
    if !no_suspend::is_on_only_by(claimed.section()) {
        return wake(claimed);
    }
    let processor = carrier(claimed.section()).and_then(|carrier| carrier.processor());
    let core = claimed.core();
    if !may(processor) {
        core.wait_info.begin_anew();
        return wake(claimed);
    }
    core.wait_info.hand_over();
    let processor = processor.filter(|processor| core.is_queued_in(processor.runtime().queues()));
    match processor.zip(current()) {
        Some((processor, running)) => {
            if recorder::is_on() {
                recorded::woken(core);
            }
            core.continuation.order_before();
            if core.handshake.wake() {
                // SAFETY: the handshake gave us the right to run it.
                run_in_place(processor, running, unsafe {
                    Ready::new(NonNull::from(core))
                });
            }
        }
        // This is a platform thread, or one of the two has a scheduler of the program's.
        None => {
            wake(claimed);
            mount::give_way();
        }
    }
}

/// Runs a thread that was woken in place of the running one, which goes to the back of its queue.
/// The caller's carrier holds `processor`, in a section.
#[cold]
pub(crate) fn run_in_place(processor: Holder<'_>, running: Current, woken: Ready) {
    if processor.counters().runnable(Cause::Wake) {
        time(&woken);
    }
    mount::yield_to(running, woken);
}

/// Calls `f` with the thread in a slot, as [`table::inspect`] does. A thread that is woken
/// meanwhile is scheduled when `f` has returned.
pub fn inspect<R>(slot: Slot, f: impl FnOnce(&Core, bool) -> R) -> Option<R> {
    table::inspect(slot, f, |thread| schedule(thread, Cause::Wake))
}

/// Notes that a thread became runnable now.
fn time(thread: &Ready) {
    thread.core().mount_flags.time(sys::now());
}

/// Calls `f` out of line: the code around it is hot and stays small.
#[cold]
#[inline(never)]
pub(crate) fn cold<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Lets other threads run: the running virtual thread goes to the back of its queue.
///
/// A safe point: the monitor's signal hardly ever finds a thread that yields in a loop in code that
/// it may interrupt. Without the check here, such a thread, alone on its carrier, did not run a
/// pending handler within 30 s.
#[inline]
pub fn yield_now(core: Current) {
    mount::suspend(core, After::Yield);
    if core.wait.safe_point_requested() {
        safepoint::run_pending();
    }
}
