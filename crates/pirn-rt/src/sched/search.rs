//! Where a carrier looks for work: its own queue, the injector, events, and other processors'
//! queues.

use super::idle::FEW;
use super::{Holder, Processors};
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

impl Holder<'_> {
    /// Looks for a thread once in every place, the cheapest first.
    pub(super) fn look(self) -> Option<Ready> {
        let runtime = self.runtime();
        if runtime.turns.any()
            && let Some(thread) = self.take_turn()
        {
            return Some(thread);
        }
        if self.maintenance_due() {
            self.shrink_queue();
            if self.look_due() {
                runtime.take_events();
            }
            // Otherwise a carrier that always has threads of its own would never relieve a stuck
            // one.
            if let Some(thread) = self.fetch().or_else(|| self.relieve()) {
                return Some(thread);
            }
        }
        if let Some(thread) = self.pop().or_else(|| self.fetch()) {
            return Some(thread);
        }
        runtime.take_events();
        if let Some(thread) = self.pop() {
            return Some(thread);
        }
        // Urgent threads again: the limit in a row was reached, but nothing else is runnable.
        let urgent = runtime.turns.any().then(|| self.take_turn()).flatten();
        urgent
            .or_else(|| self.relieve())
            .or_else(|| self.take_computing())
            .or_else(|| self.steal(FEW + 1))
    }

    /// Takes threads of the processor that the monitor reported as stuck.
    fn relieve(self) -> Option<Ready> {
        let victim = self.runtime().processors.take_stuck()?;
        if victim.index == self.index {
            return None;
        }
        self.steal_from(victim)
    }

    /// Takes a share of the injector.
    fn fetch(self) -> Option<Ready> {
        let runtime = self.runtime();
        let waiting = runtime.injector.len();
        if waiting == 0 {
            return None;
        }
        let share = waiting / runtime.settings.parallelism + 1;
        let most = share.min(INJECTOR_BATCH).min(1 + self.queue.room());
        let mut batch = [const { None }; INJECTOR_BATCH];
        let mut len = 0;
        let first = runtime.injector.pop(most, |thread| {
            batch[len] = Some(thread);
            len += 1;
        });
        for thread in batch.into_iter().take(len).flatten() {
            self.enqueue(thread);
        }
        first
    }

    /// Takes half of another processor's queue, if that has at least `least` threads.
    fn steal(self, least: usize) -> Option<Ready> {
        let all = self.runtime().processors.used();
        let start = self.index + 1;
        (0..all.len() - 1).find_map(|i| {
            let victim = &all[(start + i) % all.len()];
            if victim.queue.len() < least {
                return None;
            }
            self.steal_from(victim)
        })
    }

    /// Looks for work for a while.
    pub(super) fn search(self) -> Option<Ready> {
        self.set_searching(true);
        let found = self.search_for_a_while();
        self.set_searching(false);
        found
    }

    fn search_for_a_while(self) -> Option<Ready> {
        let runtime = self.runtime();
        let begin = sys::now();
        let mut polled = begin;
        let mut suspects = Suspects::new();
        loop {
            for _ in 0..8 {
                core::hint::spin_loop();
            }
            if runtime.injector.len() > 0
                && let Some(thread) = self.fetch()
            {
                return Some(thread);
            }
            if runtime.turns.any()
                && let Some(thread) = self.take_turn().or_else(|| self.take_computing())
            {
                return Some(thread);
            }
            if let Some(thread) = self.steal(FEW + 1) {
                return Some(thread);
            }
            let now = sys::now();
            if suspects.any_stuck(&runtime.processors, now)
                && let Some(thread) = self.steal(1)
            {
                return Some(thread);
            }
            if now - polled >= SEARCH_POLL_NS {
                polled = now;
                runtime.take_events();
                if let Some(thread) = self.pop() {
                    return Some(thread);
                }
            }
            if now - begin >= runtime.settings.spin_ns {
                return None;
            }
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
        let tick = victim.tick.load(Ordering::Relaxed); // Relaxed: a hint.
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
    use crate::mark::InHandler;
    use crate::runtime::testing;
    use crate::sched;
    use crate::vthread::Carrier;

    #[test]
    fn a_thread_that_a_handler_wakes_is_found_by_the_look_that_takes_the_kick() {
        let runtime = testing::make_with(testing::few(1));
        let carrier = Carrier::new(0, runtime);
        carrier.hold(testing::hold(runtime));
        let (_handle, thread) = testing::ready(runtime, || ());
        let id = thread.core().id();
        InHandler::run(libc::SIGUSR1 as u16, &(0..0), || sched::start(thread));
        let found = carrier.enter(runtime, || {
            let processor = carrier.processor().unwrap();
            processor.count(); // The first look is one of maintenance, which is another path.
            processor.look()
        });
        let found = found.expect("the thread is lost: no carrier is going to look for it");
        assert_eq!(found.core().id(), id);
        sched::abandon(found);
    }
}
