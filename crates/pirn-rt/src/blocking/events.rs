//! The events that idle carriers wait for: timers and descriptors.

use crate::blocking::fds::{epoll, review};
use crate::blocking::parking_lot;
use crate::runtime::Runtime;
use crate::sched::{self, Holder};
use crate::time::Deadline;
use crate::vthread::magazines;

/// A carrier gives back the memory of unused stacks after it has been idle for this long.
const TRIM_AFTER_NS: u64 = 1_000_000_000;

impl Runtime {
    /// Wakes the threads whose timers are due, whose descriptors are ready, and that signal
    /// handlers have woken, without waiting. A carrier that holds a processor gets them in its
    /// queue, and has to look there: others leave so short a queue alone.
    pub(crate) fn take_events(&self) {
        // All shards: the carriers of the others may be asleep and rely on this one.
        self.timers.fire_all();
        let mut buffer = epoll::buffer();
        let fetched = self.poller.fetch(&mut buffer, Deadline::PASSED);
        if fetched.dispatch() {
            self.decline_search();
        }
        self.deliver_posted();
        review::run_if_due();
    }

    /// Wakes the threads that signal handlers have woken.
    #[inline]
    fn deliver_posted(&self) {
        self.injector.take_posted(sched::enqueue_posted);
        parking_lot::deliver_posted();
    }

    /// Blocks the calling carrier until there is an event, a timer is due, or there is a
    /// [kick](super::fds::epoll::Poller::kick). Calls `resumed` when that has happened, and then
    /// wakes the threads concerned.
    pub(crate) fn wait_for_events(&self, resumed: impl FnOnce()) {
        let timer = self.timers.begin_sleep();
        let trim = match self.stacks.wants_trim() {
            true => Deadline::after_nanos(TRIM_AFTER_NS),
            false => Deadline::NEVER,
        };
        let deadline = timer.min(trim);
        let kicked = self.nap(deadline);
        let mut buffer = epoll::buffer();
        let deadline = if kicked { Deadline::PASSED } else { deadline };
        let fetched = self.poller.fetch(&mut buffer, deadline);
        self.timers.end_sleep(timer);
        // A nap that ended by a kick has taken the kick: nothing of it is among the events.
        if !kicked && fetched.is_empty() && trim.has_passed() {
            self.trim();
            if !self.timers.next_deadline().has_passed() && !review::due().has_passed() {
                return;
            }
        }
        resumed();
        self.timers.fire_all();
        fetched.dispatch();
        self.deliver_posted();
        review::run_if_due();
    }

    /// Gives back the memory of unused stacks and cells, until threads become runnable. Called by
    /// carriers that have nothing else to do.
    fn trim(&self) {
        // SAFETY: no thread holds an idle processor, or can acquire it while it is passed to this.
        self.idle
            .for_each(|processor| unsafe { Holder::new(processor) }.give_back_slots());
        while self.injector.len() == 0 && self.stacks.trim() {}
        if self.injector.len() == 0 {
            magazines::trim();
        }
    }
}
