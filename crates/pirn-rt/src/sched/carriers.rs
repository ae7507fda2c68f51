//! The carriers: platform threads that hold a processor and run the threads in its queue.

use super::spare::Spare;
use super::{Acquired, Holder, Processor, preempt};
use crate::panic;
use crate::recorder::kinds;
use crate::runtime::Runtime;
use crate::sys;
use crate::vthread::{self, Carrier, Ready, recorded, signals};
use core::sync::atomic::Ordering;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Starts the carrier that begins with this processor.
pub(super) fn start_one(processor: &'static Processor) -> io::Result<()> {
    let name = format!("pirn-carrier-{}", processor.index);
    vthread::start_helper(&name, vthread::ROOMY, move || run(processor))
}

fn run(processor: &'static Processor) {
    let runtime = processor.runtime();
    // Whatever signals the program blocked before it started the runtime: those that others send
    // are for threads, not for carriers.
    signals::block_others_but_raised();
    sys::unblock_signal(preempt::SIGNAL);
    let carrier = Carrier::new(processor.index as u32, runtime);
    // SAFETY: the processor was made, or added, for this carrier, and was never on the idle list.
    carrier.hold(unsafe { Acquired::new(processor) });
    // If a carrier ended, its threads would wait for ever without a message.
    let run = || {
        carrier.enter(runtime, || {
            loop {
                let thread = next(runtime, &carrier);
                // SAFETY: this is the carrier's own stack.
                unsafe { carrier.mount(thread) };
            }
        })
    };
    let Err(payload) = catch_unwind(AssertUnwindSafe(run));
    let text = panic::message(&*payload).unwrap_or("(no message)");
    sys::fatal(&["a carrier panicked: ", text])
}

/// Returns the next thread to run; sleeps until there is one.
fn next(runtime: &'static Runtime, carrier: &Carrier) -> Ready {
    let mut searching = false;
    loop {
        if let Some(processor) = carrier.processor() {
            if processor.take_preempted() {
                preempt::look_around(runtime, carrier);
            }
            if let Some(spare) = &processor.spare {
                match stand_in(runtime, processor, spare) {
                    Some(thread) => return thread,
                    None => continue,
                }
            }
            let found = processor.look().or_else(|| {
                let idle = &runtime.idle;
                searching = searching
                    || idle.take_request()
                    || idle.start_searching(runtime.settings.parallelism);
                if !searching {
                    return None;
                }
                processor.search()
            });
            if searching {
                searching = false;
                runtime.stop_searching(found.is_some());
            }
            if let Some(thread) = found {
                return thread;
            }
            processor.prepare();
            // SAFETY: `processor` is not used below.
            if unsafe { carrier.let_go() }.is_some_and(|it| runtime.release_processor(it)) {
                if let Some(acquired) = runtime.acquire_processor() {
                    carrier.hold(acquired);
                }
                continue;
            }
        }
        searching = sleep(runtime, carrier);
    }
}

/// Sleeps without a processor until there is an event or a kick, and takes a processor again if
/// there is one. Returns whether this carrier has been asked to search.
///
/// The threads that are woken here are urgent if there is none, because a platform thread that
/// waits for a virtual one has taken it to run that, and if others have been preempted. Otherwise
/// they would wait behind those, and behind all in the injector, of which each may compute for a
/// slice.
fn sleep(runtime: &Runtime, carrier: &Carrier) -> bool {
    recorded::event(kinds::SLEEP, 0);
    let mut taken = None;
    runtime.wait_for_events(|| {
        recorded::event(kinds::AWAKE, 0);
        taken = runtime.acquire_processor();
        let urgent = taken.is_none() || runtime.turns.any();
        carrier.set_urgent(urgent);
        if !urgent && let Some(acquired) = taken.take() {
            carrier.hold(acquired);
        }
    });
    carrier.set_urgent(false);
    if let Some(acquired) = taken {
        carrier.hold(acquired);
    }
    // A carrier without a processor cannot search. The carrier that took the last processor takes
    // up the request when it runs out of work.
    carrier.processor().is_some() && runtime.idle.take_request()
}

/// Looks once for a thread with a spare processor, and rests if there is none.
fn stand_in(runtime: &'static Runtime, processor: Holder<'_>, spare: &Spare) -> Option<Ready> {
    let leaving = spare.is_leaving();
    // This look may take a kick from a sleeper, and the kick may have asked for a search: then this
    // is the search.
    let searching = !leaving && runtime.idle.take_request();
    let found = (!leaving).then(|| processor.look()).flatten();
    if searching {
        runtime.stop_searching(found.is_some());
    }
    if found.is_none() {
        processor.empty();
        // The sleepers were not told of anything that happened here. If there are none, the monitor
        // is awake.
        if runtime.idle.work_in_sight(|| runtime.work_in_queues()) {
            runtime.notify();
        }
        // In this order: the first has the fence that the count needs.
        if runtime.timers.unattended() && runtime.idle.count() > 0 {
            runtime.poller.kick();
        }
        // Nobody holds a processor that rests. Its carrier would be taken for one whose thread
        // computes: with events always there, the monitor woke 8,000 times per second to ask it.
        processor.holder.store(0, Ordering::Relaxed); // Relaxed: a hint.
        spare.rest(&runtime.spares_in_use);
        processor.note();
    }
    found
}
