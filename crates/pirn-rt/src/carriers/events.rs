//! The events that idle carriers wait for: timers and descriptors.

use super::nap::nap;
use crate::blocking::fds::readiness::{self, Event};
use crate::blocking::fds::review;
use crate::blocking::{parking_lot, timer};
use crate::reactor::epoll::{self, Fetched};
use crate::sched::{self, Cause, Holder, Runtime, magazines};
use crate::time::Deadline;

/// A carrier gives back the memory of unused stacks after it has been idle for this long.
const TRIM_AFTER_NS: u64 = 1_000_000_000;

/// Wakes the threads whose timers are due, whose descriptors are ready, and that signal handlers
/// have woken, without waiting. If the calling carrier holds a processor, the threads go into its
/// queue, and the carrier must look there: other carriers leave a short queue alone.
pub(super) fn take(runtime: &Runtime) {
    // All shards: the carriers of the others may be asleep and rely on this one.
    timer::fire_all(&runtime.timers);
    let mut buffer = epoll::buffer();
    let fetched = runtime.poller.fetch(&mut buffer, Deadline::PASSED);
    if dispatch(&fetched) {
        runtime.decline_search();
    }
    deliver_posted(runtime);
    review::run_if_due();
}

/// Wakes the threads whose descriptors are ready, and waits for that until `deadline`. Returns
/// whether there was an event.
pub(super) fn take_until(runtime: &Runtime, deadline: Deadline) -> bool {
    let mut buffer = epoll::buffer();
    let fetched = runtime.poller.fetch(&mut buffer, deadline);
    dispatch(&fetched);
    deliver_posted(runtime);
    !fetched.is_empty()
}

/// Wakes the threads that wait for these events. Returns whether there was a kick.
fn dispatch(fetched: &Fetched) -> bool {
    fetched.for_each(|report| {
        let event = Event {
            read: report.read,
            write: report.write,
            lasting: report.lasting,
        };
        readiness::report(report.fd, report.generation, event);
    })
}

/// Wakes the threads that signal handlers have woken.
#[inline]
fn deliver_posted(runtime: &Runtime) {
    // `Yield`: counted when they were posted.
    let enqueue = |thread| sched::schedule(thread, Cause::Yield);
    runtime.injector.take_posted(enqueue);
    parking_lot::deliver_posted();
}

/// Blocks the calling carrier until there is an event, a timer is due, or there is a
/// [kick](epoll::Poller::kick). Calls `resumed` when that has happened, and then wakes the threads
/// concerned.
pub(super) fn wait_for(runtime: &Runtime, resumed: impl FnOnce()) {
    let timer = runtime.timers.begin_sleep(review::due);
    let trim = match runtime.stacks.wants_trim() {
        true => Deadline::after_nanos(TRIM_AFTER_NS),
        false => Deadline::NEVER,
    };
    let deadline = timer.min(trim);
    let kicked = nap(runtime, deadline);
    let mut buffer = epoll::buffer();
    let deadline = if kicked { Deadline::PASSED } else { deadline };
    let fetched = runtime.poller.fetch(&mut buffer, deadline);
    runtime.timers.end_sleep(timer);
    // A nap that ended by a kick has taken the kick: nothing of it is among the events.
    if !kicked && fetched.is_empty() && trim.has_passed() {
        give_memory_back(runtime);
        if !runtime.timers.next_deadline().has_passed() && !review::due().has_passed() {
            return;
        }
    }
    resumed();
    timer::fire_all(&runtime.timers);
    dispatch(&fetched);
    deliver_posted(runtime);
    review::run_if_due();
}

/// Gives back the memory of unused stacks and cells, until threads become runnable. Called by
/// carriers that have nothing else to do.
fn give_memory_back(runtime: &Runtime) {
    // SAFETY: no thread holds an idle processor, or can acquire it while it is passed to this.
    let give_back = |processor| unsafe { Holder::new(processor) }.give_back_slots();
    runtime.idle.for_each(give_back);
    while runtime.injector.len() == 0 && runtime.stacks.trim() {}
    if runtime.injector.len() == 0 {
        magazines::trim();
    }
}
