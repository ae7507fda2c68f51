//! Naps of idle carriers, while others see to the events.
//!
//! The kernel wakes a carrier that waits in epoll for each event, even if the carrier whose thread
//! has caused the event is about to fetch it. Two threads that talk over a socket so kept two
//! carriers busy, and moved from one to the other: 1.5 times the time per round trip, and 2.3 times
//! the processor time. So a carrier that goes to sleep while others run naps first, and sees only
//! kicks. It looks after each nap how often the others have switched meanwhile. As long as they
//! switch often, each fetches events often, and the nap goes on. Otherwise, or when all are idle,
//! this carrier waits in epoll.
//!
//! A kick increases the eventfd's counter, and a carrier that naps waits until that is not 0. So a
//! kick ends a nap, even one that came before it, whether or not a carrier in epoll has noticed the
//! kick as well.
//!
//! `crates/pirn-model` checks this file: `nap_model.rs`.

use crate::sched::Runtime;
use crate::time::Deadline;

/// The length of the first nap. Each is twice as long as the one before it.
const SHORTEST_NS: u64 = 50_000;
/// The length of the longest nap: an event waits for no longer if all other carriers get stuck.
const LONGEST_NS: u64 = 1_000_000;
/// Carriers that switch less often than this leave the events to the others.
const BRISK_NS: u64 = 10_000;

/// Sleeps as long as other carriers switch often, but not beyond the deadline. Returns whether
/// there was a kick.
pub(crate) fn nap(runtime: &Runtime, deadline: Deadline) -> bool {
    let mut length = SHORTEST_NS;
    let mut before = runtime.processors.switches();
    while runtime.idle.count() < runtime.settings.parallelism {
        let until = Deadline::after_nanos(length);
        if deadline <= until {
            return false;
        }
        if runtime.poller.wait_for_kick(until) && runtime.poller.take_kicks() {
            return true;
        }
        let now = runtime.processors.switches();
        if u64::from(now.wrapping_sub(before)) * BRISK_NS < length {
            return false;
        }
        before = now;
        length = LONGEST_NS.min(2 * length);
    }
    false
}
