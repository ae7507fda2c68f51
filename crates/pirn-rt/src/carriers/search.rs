//! Where a carrier looks for work: its own queue, the injector, events, and other processors'
//! queues.

use super::events;
use crate::sched::Holder;
use crate::sched::idle::FEW;
use crate::sched::processor::Processors;
use crate::sys;
use crate::vthread::Ready;
use core::sync::atomic::Ordering;

/// The most threads fetched from the injector at once.
const INJECTOR_BATCH: usize = 64;
/// A processor whose tick has stood still for this long is stuck in one thread, and even the
/// [few](FEW) threads in its queue may be taken. Before that, taking them would only move them away
/// from their cache.
const STILL_NS: u64 = 5_000;
/// A searching carrier asks for descriptors' events about this often.
const SEARCH_POLL_NS: u64 = 5_000;

/// Looks for a thread once in every place, the cheapest first.
pub(crate) fn look(processor: Holder<'_>) -> Option<Ready> {
    let runtime = processor.runtime();
    if runtime.preempted.any()
        && let Some(thread) = processor.take_preferred()
    {
        return Some(thread);
    }
    if processor.maintenance_due() {
        processor.shrink_queue();
        if processor.look_due() {
            events::take(runtime);
        }
        // Otherwise a carrier that always has threads of its own would never relieve a stuck
        // one.
        if let Some(thread) = fetch(processor).or_else(|| relieve(processor)) {
            return Some(thread);
        }
    }
    if let Some(thread) = processor.pop().or_else(|| fetch(processor)) {
        return Some(thread);
    }
    events::take(runtime);
    if let Some(thread) = processor.pop() {
        return Some(thread);
    }
    // Urgent threads again: the limit in a row was reached, but nothing else is runnable.
    let urgent = runtime
        .preempted
        .any()
        .then(|| processor.take_preferred())
        .flatten();
    urgent
        .or_else(|| relieve(processor))
        .or_else(|| processor.take_computing())
        .or_else(|| steal(processor, FEW + 1))
}

/// Takes threads of the processor that the monitor reported as stuck.
fn relieve(processor: Holder<'_>) -> Option<Ready> {
    let victim = processor.runtime().processors.take_stuck()?;
    if victim.index == processor.index {
        return None;
    }
    processor.steal_from(victim)
}

/// Takes a share of the injector.
fn fetch(processor: Holder<'_>) -> Option<Ready> {
    let runtime = processor.runtime();
    let waiting = runtime.injector.len();
    if waiting == 0 {
        return None;
    }
    let share = waiting / runtime.settings.parallelism + 1;
    let most = share.min(INJECTOR_BATCH).min(1 + processor.queue.room());
    let mut batch = [const { None }; INJECTOR_BATCH];
    let mut len = 0;
    let first = runtime.injector.pop(most, |thread| {
        batch[len] = Some(thread);
        len += 1;
    });
    for thread in batch.into_iter().take(len).flatten() {
        processor.enqueue(thread);
    }
    first
}

/// Takes half of another processor's queue, if that has at least `least` threads.
fn steal(processor: Holder<'_>, least: usize) -> Option<Ready> {
    let all = processor.runtime().processors.used();
    let start = processor.index + 1;
    (0..all.len() - 1).find_map(|i| {
        let victim = &all[(start + i) % all.len()];
        if victim.queue.len() < least {
            return None;
        }
        processor.steal_from(victim)
    })
}

/// Looks for work for a while.
pub(super) fn search(processor: Holder<'_>) -> Option<Ready> {
    processor.set_searching(true);
    let found = search_for_a_while(processor);
    processor.set_searching(false);
    found
}

fn search_for_a_while(processor: Holder<'_>) -> Option<Ready> {
    let runtime = processor.runtime();
    let begin = sys::now();
    let mut polled = begin;
    let mut suspects = Suspects::new();
    loop {
        for _ in 0..8 {
            core::hint::spin_loop();
        }
        if runtime.injector.len() > 0
            && let Some(thread) = fetch(processor)
        {
            return Some(thread);
        }
        if runtime.preempted.any()
            && let Some(thread) = processor
                .take_preferred()
                .or_else(|| processor.take_computing())
        {
            return Some(thread);
        }
        if let Some(thread) = steal(processor, FEW + 1) {
            return Some(thread);
        }
        let now = sys::now();
        if suspects.any_stuck(&runtime.processors, now)
            && let Some(thread) = steal(processor, 1)
        {
            return Some(thread);
        }
        if now - polled >= SEARCH_POLL_NS {
            polled = now;
            events::take(runtime);
            if let Some(thread) = processor.pop() {
                return Some(thread);
            }
        }
        if now - begin >= runtime.settings.spin_ns {
            return None;
        }
    }
}

/// Finds out which processors are stuck in one thread while a few others wait in their queue.
struct Suspects {
    seen: Option<(usize, u32, u64)>,
}

impl Suspects {
    fn new() -> Suspects {
        Suspects { seen: None }
    }

    fn any_stuck(&mut self, processors: &Processors, now: u64) -> bool {
        let few = 1..=FEW;
        let mut used = processors.used().iter();
        let Some(victim) = used.find(|p| few.contains(&p.queue.len())) else {
            self.seen = None;
            return false;
        };
        // Relaxed: by a stale count the thread is taken a little early or late.
        let tick = victim.tick.load(Ordering::Relaxed);
        match self.seen {
            Some((index, seen, since)) if index == victim.index && seen == tick => {
                now - since >= STILL_NS
            }
            _ => {
                self.seen = Some((victim.index, tick, now));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::no_suspend::InHandler;
    use crate::sched;
    use crate::sched::Carrier;
    use crate::testing;

    #[test]
    fn a_thread_that_a_handler_wakes_is_found_by_the_look_that_takes_the_kick() {
        let runtime = testing::make_with(testing::few(1));
        let carrier = Carrier::new(0, runtime);
        carrier.hold(testing::hold(runtime));
        let (_handle, thread) = testing::ready(runtime, || ());
        let id = thread.core().id();
        InHandler::run(libc::SIGUSR1 as u16, &(0..0), || {
            sched::schedule(thread, sched::Cause::Start)
        });
        let found = carrier.enter(runtime, || {
            let processor = carrier.processor().unwrap();
            processor.count(); // The first look is one of maintenance, which is another path.
            super::look(processor)
        });
        let found = found.expect("the thread is lost: no carrier is going to look for it");
        assert_eq!(found.core().id(), id);
        sched::abandon(found);
    }
}
