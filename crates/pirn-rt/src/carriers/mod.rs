//! The carriers: platform threads that hold a processor and run the threads in its queue. This file
//! has their loop. [`search`]: where they look for work. [`events`] and [`nap`]: how they wait for
//! it.
//!
//! [`monitor`]: the platform thread that repairs what a missing wake left undone. [`policy`]: which
//! threads the monitor asks to give way.

pub(crate) mod events;
mod monitor;
pub(crate) mod nap;
#[cfg(test)]
#[path = "nap/tests.rs"] // `pirn-model` includes `nap`, without a whole runtime.
mod nap_tests;
mod policy;
pub(crate) mod search;

use crate::blocking::fds::review;
use crate::blocking::timer;
use crate::panic;
use crate::recorder::kinds;
use crate::sched::simulation::Simulator;
use crate::sched::spare::Spare;
use crate::sched::{Acquired, Carrier, Holder, Processor, Runtime, preempt, recorded};
use crate::sys;
use crate::vthread::{self, Ready, signals};
use core::sync::atomic::Ordering;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Starts the carriers and the monitor of a runtime.
pub fn start(runtime: &'static Runtime) -> io::Result<()> {
    let regular = runtime.processors.used();
    regular.iter().try_for_each(start_one)?;
    match runtime.settings.simulator {
        None => monitor::start(runtime),
        Some(_) => Ok(()), // There is nothing to repair, and its time would be another.
    }
}

/// Starts the carrier that begins with this processor.
fn start_one(processor: &'static Processor) -> io::Result<()> {
    let name = format!("pirn-carrier-{}", processor.index);
    vthread::start_helper(&name, vthread::HELPER_STACK, move || run(processor))
}

fn run(processor: &'static Processor) {
    let runtime = processor.runtime();
    // Other processes and threads send signals to threads of the program, not to carriers.
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
    // Not by `panic::catch`: the payload has the message, and is never dropped.
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
                look_around(runtime, carrier);
            }
            if let Some(simulator) = runtime.settings.simulator {
                return next_simulated(runtime, processor, simulator);
            }
            if let Some(spare) = &processor.spare {
                match stand_in(runtime, processor, spare) {
                    Some(thread) => return thread,
                    None => continue,
                }
            }
            let found = search::look(processor).or_else(|| {
                let idle = &runtime.idle;
                searching = searching
                    || idle.take_request()
                    || idle.start_searching(runtime.settings.parallelism);
                if !searching {
                    return None;
                }
                search::search(processor)
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

/// Returns the thread that a simulator has chosen.
#[cold]
fn next_simulated(
    runtime: &'static Runtime,
    processor: Holder<'_>,
    simulator: &dyn Simulator,
) -> Ready {
    loop {
        processor.count_look();
        match simulator.expects_events() {
            true => events::take(runtime),
            false => timer::fire_all(&runtime.timers),
        }
        if let Some(thread) = simulator.next() {
            return thread;
        }
        let due = runtime.timers.next_deadline();
        let outside = simulator.expects_others(due);
        if !outside.is_some_and(|until| events::take_until(runtime, until)) {
            simulator.advance(due);
        }
    }
}

/// Sleeps without a processor until there is an event or a kick, and takes a processor again if
/// there is one. Returns whether this carrier has been asked to search.
///
/// The threads that are woken here are urgent in two cases: there is no processor, because a
/// platform thread that joins a virtual one runs it inline; or others have been preempted.
/// Otherwise they would wait behind the preempted threads and all threads in the injector, and each
/// of these may compute for a slice.
fn sleep(runtime: &Runtime, carrier: &Carrier) -> bool {
    recorded::event(kinds::SLEEP, 0);
    let mut taken = None;
    events::wait_for(runtime, || {
        recorded::event(kinds::AWAKE, 0);
        taken = runtime.acquire_processor();
        let urgent = taken.is_none() || runtime.preempted.any();
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

/// Looks once for a thread with a spare processor, and rests if it finds none.
fn stand_in(runtime: &'static Runtime, processor: Holder<'_>, spare: &Spare) -> Option<Ready> {
    let leaving = spare.is_leaving();
    // This look may take a kick from a sleeper, and the kick may have asked for a search: then this
    // is the search.
    let searching = !leaving && runtime.idle.take_request();
    let found = (!leaving).then(|| search::look(processor)).flatten();
    if searching {
        runtime.stop_searching(found.is_some());
    }
    if found.is_none() {
        processor.empty();
        // The sleepers were not told of anything that happened here. If no carrier sleeps, the
        // monitor is awake.
        if runtime.idle.work_in_sight(|| runtime.work_in_queues()) {
            runtime.notify();
        }
        // In this order: the first has the fence that the count needs.
        if runtime.timers.unattended(review::due) && runtime.idle.count() > 0 {
            runtime.poller.kick();
        }
        // No platform thread holds a processor that rests. Otherwise the monitor would take its
        // carrier for one whose thread computes, and with events always there it woke 8,000 times
        // per second to ask that thread.
        processor.holder.store(0, Ordering::Relaxed); // Relaxed: the monitor reads it at each tick.
        spare.rest(&runtime.spares_in_use);
        processor.note();
    }
    found
}

/// Takes the events for which a thread may have been preempted: due timers, ready descriptors, and
/// a thread that came from outside. The threads that they wake are urgent.
#[cold]
fn look_around(runtime: &'static Runtime, carrier: &Carrier) {
    carrier.urgently(|| {
        if let Some(thread) = runtime.injector.take_from_outside() {
            runtime.preempted.push_urgent(thread);
        }
        events::take(runtime);
    });
}
