//! The driver: what idle carriers do instead of nothing.

use super::{epoll, review, timers};
use crate::sched::{self, carriers, driver::Driver};
use crate::stack::pool;
use crate::sys;
use crate::time::Deadline;

/// How long a carrier must have been idle before it gives back the memory of unused stacks.
const TRIM_AFTER_NS: u64 = 1_000_000_000;

/// epoll and the timers.
pub(crate) struct EventDriver;

impl Driver for EventDriver {
    fn turn(&self) -> bool {
        // All shards: the carriers of the others may be asleep, trusting in us.
        let fired = timers::fire_all();
        let fetched = epoll::fetch(Some(0));
        let (woke, kicked) = fetched.dispatch();
        if kicked && sched::idle::is_requested() {
            epoll::kick(); // Meant for a carrier that sleeps: pass it on.
        }
        review::run_if_due();
        fired | woke
    }

    fn wait(&self, resumed: &mut dyn FnMut()) {
        let timer = timers::begin_sleep();
        let trim = pool::wants_trim().then(|| sys::now() + TRIM_AFTER_NS);
        let review = Some(review::due()).filter(|due| !due.is_never());
        let review = review.map(Deadline::nanos);
        let deadline = [timer, trim, review].into_iter().flatten().min();
        let fetched = epoll::fetch(deadline);
        if let Some(timer) = timer {
            timers::end_sleep(timer);
        }
        let idle_long = fetched.is_empty() && trim.is_some_and(|t| sys::now() >= t);
        if idle_long {
            carriers::trim();
            if timers::next_deadline().is_none_or(|d| d > sys::now()) {
                return;
            }
        }
        resumed();
        timers::fire_all();
        fetched.dispatch();
        review::run_if_due();
    }

    fn kick(&self) {
        epoll::kick();
    }

    fn overdue(&self, slack: u64) -> bool {
        timers::overdue(slack)
    }

    fn unattended(&self) -> bool {
        timers::unattended()
    }

    fn pending(&self) -> bool {
        epoll::pending()
    }
}
