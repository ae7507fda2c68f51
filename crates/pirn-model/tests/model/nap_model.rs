//! Naps: work that a kick announces is found, whether the kick comes before, during or after a nap,
//! and whether a carrier in epoll notices it as well.
//!
//! `nap.rs` has no orderings of its own. A kick leaves two traces, the counter of the eventfd and
//! the edge that epoll reports, and a nap takes the counter only. So these models do not fail if a
//! nap overlooks the counter, or if the carrier waits in epoll after a nap that has seen it: the
//! edge is still there, and what is lost is time. They fail if a nap takes both traces and does not
//! say so: then a carrier sleeps beside work.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::check;
use crate::nap::nap;
use crate::sched::{Idle, Poller, Processors, Runtime, Settings};
use crate::time::Deadline;

struct World {
    runtime: Runtime,
    /// Work that no carrier has taken.
    work: AtomicUsize,
}

impl World {
    /// Two carriers, one of which is idle.
    fn new() -> Arc<World> {
        Arc::new(World {
            runtime: Runtime {
                settings: Settings { parallelism: 2 },
                idle: Idle(AtomicUsize::new(1)),
                processors: Processors(AtomicU32::new(0)),
                poller: Poller::new(),
            },
            work: AtomicUsize::new(0),
        })
    }

    /// The same, and the thread of the idle one, which looks for work.
    fn with_idle_carrier() -> (Arc<World>, thread::JoinHandle<()>) {
        let world = World::new();
        let idle = world.clone();
        (world, thread::spawn(move || idle.carry()))
    }

    /// Sleeps as `events::wait_for` does.
    fn sleep(&self) {
        let kicked = nap(&self.runtime, Deadline::NEVER);
        let deadline = match kicked {
            true => Deadline::after_nanos(0),
            false => Deadline::NEVER,
        };
        self.runtime.poller.fetch(deadline);
    }

    /// Sleeps until it has taken some work.
    fn carry(&self) {
        let take = || {
            self.work
                .fetch_update(Relaxed, Relaxed, |work| work.checked_sub(1))
        };
        while take().is_err() {
            self.sleep();
        }
    }

    /// The other carrier switches, makes work and announces it.
    fn make_work(&self) {
        self.work.fetch_add(1, Relaxed);
        self.runtime.poller.kick();
    }
}

#[test]
fn work_that_is_announced_is_found() {
    check(3, || {
        let (world, idle) = World::with_idle_carrier();
        // Enough for a nap to go on.
        world.runtime.processors.0.fetch_add(1000, Relaxed);
        world.make_work();
        idle.join().unwrap();
    });
}

#[test]
fn work_is_found_when_all_become_idle() {
    check(3, || {
        let (world, idle) = World::with_idle_carrier();
        world.runtime.processors.0.fetch_add(1000, Relaxed);
        world.runtime.idle.0.fetch_add(1, Relaxed);
        world.make_work();
        idle.join().unwrap();
    });
}
