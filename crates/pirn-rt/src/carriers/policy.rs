//! Which threads that compute are to give way, and when: the monitor's part of preemption.
//!
//! While all processors are held, and a thread keeps one of them to itself, no carrier might look
//! at timers, events and queues. So the monitor does ([`Policy::rest`]): it sleeps until the next
//! timer is due, there is an event, or a slice is over, and [asks](crate::sched::preempt) a thread
//! to give way:
//!
//! * for something *urgent* (a due timer, an event, a thread from outside) at once, one thread for
//!   all that is urgent now: its carrier takes care of all of it;
//! * when its *slice* is over and others wait ([`Preempted::limit`]) in its processor's queue, or
//!   where any processor takes them from: among these is the queue of one that is
//!   [stuck](crate::sched::stuck).
//!
//! [`Preempted::limit`]: crate::sched::preempt::queues::Preempted::limit
//!
//! A thread keeps a processor to itself once it has run for [`KEEPING_NS`], or if it has
//! used up a slice before. If ten thousand threads serve a connection each, there are always events
//! of other connections: none of these threads is asked to give way to them, because it soon gives
//! way by itself.
//!
//! A thread that cannot be interrupted where it is will be asked again. It is not asked while the
//! kernel says that it does not run: a signal would end some system calls.

use super::monitor::Standstill;
use crate::sched::os_thread::StateFile;
use crate::sched::preempt::request::Reason;
use crate::sched::preempt::{MARKER, SIGNAL};
use crate::sched::{Processor, Runtime};
use crate::sys;
use crate::time::Deadline;
use core::sync::atomic::Ordering::Relaxed;

/// A thread is asked again this long after it did not give way, and later if it has not for
/// [`EAGER_NS`].
const RETRY_NS: u64 = SHORTEST_NAP_NS;
/// For this long a thread is asked every [`RETRY_NS`]: one that allocates may be in `malloc` in 19
/// of 20 questions.
const EAGER_NS: u64 = 1_500_000;
/// The monitor looks again after this time at a thread that is to give way to something urgent, if
/// the thread before it on the same processor gave way at the first question.
const PROMPT_NS: u64 = 200_000;

/// A slice is over when less than this part of it is left, so that one wake of the monitor serves
/// several threads.
const NEARLY: u64 = 8;
/// The longest time between two questions.
const LONGEST_RETRY_NS: u64 = 1_000_000;

/// A thread that has run for this long, or for a slice if that is shorter, is taken for one that
/// computes. Without it, 10,000 connections on one core had some 400 preemptions per second, each
/// for events that came before the others' requests: p99 300 to 1,200 ms instead of 160.
const KEEPING_NS: u64 = 1_000_000;

/// The least time between two looks. After a look, of some 30 µs, the monitor has had more than its
/// share of the processor for as long again. If it wakes before, the kernel (EEVDF, Linux 6.6) does
/// not take the processor from the thread that computes until its next tick: 4 ms late.
const SHORTEST_NAP_NS: u64 = 100_000;
/// A thread that has been asked for this long cannot be preempted.
const REFUSAL_NS: u64 = 3_000_000;

/// See the module's documentation.
pub(super) struct Policy {
    runtime: &'static Runtime,
    pub(super) watched: Vec<Watched>,
}

/// What else is known about the thread that a processor was last
/// [observed](Processor::observe) to run.
#[derive(Default)]
pub(super) struct Watched {
    first_seen: u64,
    /// When the slice of the running thread began, as far as is known.
    since: u64,
    /// The thread had used up a slice before.
    computes: bool,
    /// The monitor saw the thread there at its last look, too.
    still: bool,
    /// When the monitor first and last asked the thread to give way; 0: not yet.
    first_asked: u64,
    last_asked: u64,
    /// The last thread that was asked gave way at the first question.
    is_prompt: bool,
    state: StateFile,
    pub(super) standstill: Standstill,
}

impl Watched {
    /// Takes note of a processor. Returns for how long it has been held without a switch.
    fn observe(&mut self, processor: &Processor, now: u64) -> u64 {
        let first_seen = processor.observe(now);
        self.still = first_seen != 0 && first_seen == self.first_seen;
        if self.still || first_seen == 0 {
            return if self.still { now - first_seen } else { 0 };
        }
        self.standstill = Standstill::default();
        let resumed = processor.request.resumed(processor.observed_tick());
        if self.first_asked != 0 {
            self.is_prompt = self.first_asked == self.last_asked;
        }
        self.first_seen = first_seen;
        self.since = resumed.map_or(now, |slice| slice.since);
        self.computes = resumed.is_some_and(|slice| slice.computes);
        self.still = resumed.is_some();
        (self.first_asked, self.last_asked) = (0, 0);
        now - first_seen
    }

    /// Returns the time from which the thread is taken for one that keeps its processor, or `None`
    /// if it was not there at the last look.
    fn keeping_from(&self, slice: u64) -> Option<u64> {
        let after = match self.computes {
            true => 0,
            false => slice.min(KEEPING_NS),
        };
        self.still.then_some(self.since + after)
    }

    /// Returns whether the thread probably gives way when it is asked: it has not been asked yet,
    /// and the one before it did.
    fn will_be_prompt(&self) -> bool {
        self.is_prompt && self.first_asked == 0
    }

    /// Returns whether hardly anything is left of a slice of `limit` ns.
    fn is_nearly_over(&self, limit: u64, now: u64) -> bool {
        self.since + limit - limit / NEARLY <= now
    }

    /// Returns the time from which the thread may be asked.
    fn may_ask(&self) -> u64 {
        let pause = (self.last_asked - self.first_asked).saturating_sub(EAGER_NS) / 4;
        match self.last_asked {
            0 => 0,
            last => last + pause.clamp(RETRY_NS, LONGEST_RETRY_NS),
        }
    }
}

/// When the monitor should look again.
struct Next {
    at: u64,
    /// Also when there are events.
    events: bool,
}

impl Policy {
    pub(super) fn new(runtime: &'static Runtime) -> Policy {
        let all = runtime.processors.all.iter();
        Policy {
            runtime,
            watched: all.map(|_| Watched::default()).collect(),
        }
    }

    /// Sleeps for `pause` ns, and asks threads to give way meanwhile.
    pub(super) fn rest(&mut self, pause: u64) {
        let end = sys::now() + pause;
        let mut events = false;
        loop {
            let now = sys::now();
            if now >= end {
                return;
            }
            let next = match self.runtime.preempted.slice_ns {
                0 => None,
                _ => self.look(now, events),
            };
            let Some(next) = next else {
                return sys::nap(end - now);
            };
            // Not shorter where the monitor's own tick ends, either: see `SHORTEST_NAP_NS`.
            let until = Deadline::from_nanos(next.at.min(end).max(now + SHORTEST_NAP_NS));
            events = self.runtime.poller.wait_until(until, next.events);
        }
    }

    /// Returns whether the thread that was just [observed](Self::observe) on this processor cannot
    /// be preempted, or has not given way for [`REFUSAL_NS`].
    pub(super) fn may_be_stuck(&self, processor: &Processor, now: u64) -> bool {
        if self.runtime.preempted.slice_ns == 0 || !can_ask(processor) {
            return true;
        }
        let first_asked = self.watched[processor.index].first_asked;
        first_asked != 0 && now.saturating_sub(first_asked) >= REFUSAL_NS
    }

    /// Takes note of a processor. Returns for how long it has been held without a switch.
    pub(super) fn observe(&mut self, processor: &Processor, now: u64) -> u64 {
        self.watched[processor.index].observe(processor, now)
    }

    /// Looks at all processors, and asks those threads to give way that have to. Returns when to
    /// look again, or `None` if no thread keeps a processor from others. `events`: there are some.
    fn look(&mut self, now: u64, events: bool) -> Option<Next> {
        let runtime = self.runtime;
        if runtime.idle.count() > 0 {
            return None;
        }
        let used = runtime.processors.used();
        let mut kept_from = None;
        for processor in used {
            self.observe(processor, now);
            let watched = &self.watched[processor.index];
            let from = watched.keeping_from(runtime.preempted.slice_ns);
            kept_from = [kept_from, from].into_iter().flatten().min();
        }
        let at = kept_from?;
        if at > now {
            return Some(Next { at, events: false });
        }
        let timer = runtime.timers.next_deadline().nanos();
        let preempted = &runtime.preempted;
        let mut next = Next {
            at: timer,
            events: true,
        };
        let urgent = preempted.urgent() > 0 || runtime.injector.has_from_outside();
        // A thread that is stuck cannot give way to its queue: another has to.
        let stranded = used.iter().any(|processor| {
            !processor.queue.is_empty() && runtime.stuck.episode(processor.index).is_some()
        });
        let waiting = stranded || runtime.injector.len() > 0;
        if events || timer <= now || urgent {
            self.ask_for_urgent(waiting, now, &mut next);
        }
        for processor in used {
            self.ask_if_over(processor, waiting, now, &mut next);
        }
        Some(next)
    }

    /// Asks the thread that has computed for longest to give way to what is urgent.
    fn ask_for_urgent(&mut self, waiting: bool, now: u64, next: &mut Next) {
        // Until then the monitor need not wake for the same events and the same timer.
        *next = Next {
            at: now + RETRY_NS,
            events: false,
        };
        let used = self.runtime.processors.used().iter();
        let slice = self.runtime.preempted.slice_ns;
        let target = used
            .filter(|processor| {
                let watched = &self.watched[processor.index];
                let keeps = watched.keeping_from(slice).is_some_and(|from| from <= now);
                keeps && watched.may_ask() <= now && can_ask(processor)
            })
            .min_by_key(|processor| self.watched[processor.index].since);
        let Some(processor) = target else { return };
        let watched = &self.watched[processor.index];
        let limit = self.limit(processor, waiting);
        let is_over = limit.is_some_and(|limit| watched.is_nearly_over(limit, now));
        if watched.will_be_prompt() {
            next.at = now + PROMPT_NS;
        }
        let reason = if is_over {
            Reason::Slice
        } else {
            Reason::Urgent
        };
        self.ask(processor, reason, now);
    }

    /// Returns for how long the thread on this processor may go on if others wait: those in its
    /// queue, or some that any processor may run (`waiting`).
    fn limit(&self, processor: &Processor, waiting: bool) -> Option<u64> {
        let computes = self.watched[processor.index].computes;
        let queued = waiting || !processor.queue.is_empty();
        let processors = self.runtime.settings.parallelism;
        self.runtime.preempted.limit(computes, queued, processors)
    }

    /// Asks the thread on this processor to give way if its slice is over and others wait.
    fn ask_if_over(&mut self, processor: &Processor, waiting: bool, now: u64, next: &mut Next) {
        let watched = &self.watched[processor.index];
        let limit = self.limit(processor, waiting);
        let Some(limit) = limit.filter(|_| watched.still && can_ask(processor)) else {
            return;
        };
        let due = (watched.since + limit).max(watched.may_ask());
        let is_over = watched.is_nearly_over(limit, now) && watched.may_ask() <= now;
        // If a thread that should give way promptly does not, the end of the next slice shows it.
        let is_prompt = watched.will_be_prompt();
        if is_over {
            self.ask(processor, Reason::Slice, now);
        }
        next.at = next.at.min(match is_over {
            true if is_prompt => now + limit,
            true => self.watched[processor.index].may_ask(),
            false => due,
        });
    }

    fn ask(&mut self, processor: &Processor, reason: Reason, now: u64) {
        let watched = &mut self.watched[processor.index];
        if watched.first_asked == 0 {
            watched.first_asked = now;
        }
        watched.last_asked = now;
        let holder = processor.holder.load(Relaxed); // Relaxed: read again at the next tick.
        // A blocked thread may run for a moment, to show its stack to a dump.
        let stuck = self.runtime.stuck.episode(processor.index);
        if stuck.is_none_or(|episode| !episode.blocked) && watched.state.runs(holder) {
            (processor.request).ask(processor.observed_tick(), watched.since, reason);
            // Failure: the program may have forbidden the call, or the thread has ended.
            let _ = sys::send_signal(holder, SIGNAL, MARKER);
        }
    }
}

/// Returns whether a platform thread holds a processor, and may be asked.
fn can_ask(processor: &Processor) -> bool {
    // Relaxed: read again at the next tick.
    processor.holder.load(Relaxed) != 0
}

#[cfg(test)]
mod tests;
