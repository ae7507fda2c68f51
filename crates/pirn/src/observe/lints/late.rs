//! The lint for threads that have been runnable for long.
//!
//! No thread notes when it became runnable. But each queue is first in, first out, and counts: a
//! look notes the position of the next thread to come, and if all threads before it have not left
//! at a later look, the last of them has been there for all that time.

use super::report::Report;
use super::{Context, Look};
use crate::config::lints::Lint;
use pirn_rt::runtime::Runtime;
use pirn_rt::sched::ready_queue::ReadyQueue;

/// See the module's documentation.
pub(super) struct Late {
    limit: u64,
    /// One per queue: those of the processors, then the shared ones.
    marks: Vec<Mark>,
    /// It was so at the last look.
    known: bool,
}

/// What is known about one queue.
#[derive(Clone, Default)]
struct Mark {
    /// The position after the last of the threads that are watched.
    end: Option<u64>,
    /// For how long they have been watched.
    waited: u64,
}

/// The positions of the first thread of a queue, and of the next to come.
#[derive(Clone, Copy)]
struct Positions {
    first: u64,
    end: u64,
    /// They are counted modulo 2 to the power of this.
    bits: u32,
}

impl Mark {
    /// Takes note of a look, `step` ns after the last. Returns for how long a thread has been here.
    fn note(&mut self, now: Positions, step: u64) -> u64 {
        // As signed numbers, since positions wrap.
        let distance = |from: u64, to: u64| {
            let shift = 64 - now.bits;
            (to.wrapping_sub(from) << shift) as i64 >> shift
        };
        match self.end {
            Some(end) if distance(now.first, end) > 0 => self.waited += step,
            _ => {
                let any = distance(now.first, now.end) > 0;
                (self.end, self.waited) = (any.then_some(now.end), 0);
            }
        }
        self.waited
    }
}

/// Returns the positions of all queues of a runtime.
fn queues(runtime: &Runtime) -> impl Iterator<Item = Positions> {
    let own = runtime.processors.used().iter().map(|processor| {
        let (first, end) = processor.queue.positions();
        Positions {
            first: first.into(),
            end: end.into(),
            bits: u32::BITS,
        }
    });
    let shared = shared_queues(runtime).map(|queue| {
        let (first, end) = queue.positions();
        Positions {
            first,
            end,
            bits: u64::BITS,
        }
    });
    // The shared ones first, as their number does not change.
    shared.into_iter().chain(own)
}

/// Returns about how many threads are runnable and do not run.
pub(super) fn runnable(runtime: &Runtime) -> usize {
    let own = runtime.processors.used().iter().map(|p| p.queue.len());
    let shared = shared_queues(runtime).map(ReadyQueue::len);
    own.chain(shared).sum()
}

/// The number of queues that all processors share.
const SHARED: usize = 4;

/// Returns these queues; threads that have used up a slice are in the last.
fn shared_queues(runtime: &Runtime) -> [&ReadyQueue; SHARED] {
    let [urgent, interrupted, computing] = runtime.turns.queues();
    [runtime.injector.queue(), urgent, interrupted, computing]
}

impl Late {
    pub(super) fn new(runtime: &Runtime, limit: u64) -> Late {
        Late {
            limit,
            marks: vec![Mark::default(); runtime.processors.count() + SHARED],
            known: false,
        }
    }
}

impl Look for Late {
    fn look(&mut self, context: &mut Context<'_>) {
        let queues = queues(context.runtime).zip(&mut self.marks);
        let longest = queues
            .map(|(positions, mark)| mark.note(positions, context.step))
            .max()
            .unwrap_or(0);
        let late = longest >= self.limit;
        if late && !core::mem::replace(&mut self.known, late) {
            let text = text(context.runtime, longest);
            let report = Report::new(Lint::LongRunnable, (), text);
            context.reporter.report(report);
        }
        self.known = late;
    }
}

fn text(runtime: &Runtime, longest: u64) -> String {
    let stuck = runtime.stuck.episodes().count();
    let computing = shared_queues(runtime)[SHARED - 1].len();
    let carriers = runtime.settings.parallelism + runtime.spares_in_use.count();
    format!(
        "a virtual thread has been runnable for {} ms without a carrier: about {} are runnable, {} \
         of them preempted while they computed, for {carriers} carriers, of which {stuck} are stuck. \
         The program asks for more processor time than there is: give it more (PIRN_PARALLELISM={}), \
         or find what computes (`pirn top`, perf)",
        longest / 1_000_000,
        runnable(runtime),
        computing,
        runtime.settings.parallelism,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(first: u64, end: u64) -> Positions {
        let bits = u32::BITS;
        // As a processor's queue counts: modulo 2^32, near the wrap.
        let [first, end] = [first, end].map(|p| u64::from((p as u32).wrapping_sub(5)));
        Positions { first, end, bits }
    }

    #[test]
    fn a_thread_that_stays_is_noticed_and_one_that_goes_is_not() {
        let mut mark = Mark::default();
        assert_eq!(mark.note(at(0, 0), 10), 0);
        assert_eq!(mark.note(at(0, 8), 10), 0, "just seen");
        assert_eq!(mark.note(at(7, 20), 10), 10, "the eighth is still there");
        assert_eq!(
            mark.note(at(8, 21), 10),
            0,
            "all eight have left; thirteen others"
        );
        assert_eq!(mark.note(at(9, 22), 10), 10);
        assert_eq!(mark.note(at(9, 22), 10), 20);
        assert_eq!(mark.note(at(22, 22), 10), 0);
        assert_eq!(mark.note(at(22, 22), 10), 0);
    }

    #[test]
    fn a_queue_is_served_from_both_ends_of_the_count() {
        let mut mark = Mark::default();
        let at = |first: i64, end: i64| Positions {
            first: first as u64,
            end: end as u64,
            bits: u64::BITS,
        };
        assert_eq!(mark.note(at(0, 1), 10), 0);
        assert_eq!(mark.note(at(-3, 1), 10), 10, "three came before it");
        assert_eq!(mark.note(at(1, 1), 10), 0);
    }
}
