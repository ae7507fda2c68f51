//! Polling a future on the calling thread.
//!
//! Between two polls the thread waits for a signal that belongs to this call. It does not use its
//! park permit, which belongs to the code around, and which an interrupt grants as well. A wake
//! during a poll stays in the signal for the next wait; a wake after the call sets a signal that no
//! thread waits for.

use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use pirn_rt::blocking::notice::Notice;
use pirn_rt::blocking::wait::Outcome;
use pirn_rt::time::Deadline;
use pirn_rt::vthread;
use pirn_rt::vthread::awaited::Awaited;
use pirn_rt::vthread::mount::{After, suspend};
use pirn_rt::vthread::summons;
use pirn_rt::vthread::wait_word::Hearing;
use std::sync::Arc;
use std::task::Wake;

/// Polls a future until it is ready, or until a wait between two polls ends at the deadline or, if
/// `hearing` allows it, by an interrupt.
pub(crate) fn drive<F: Future + ?Sized>(
    mut future: Pin<&mut F>,
    awaited: Awaited,
    deadline: Deadline,
    hearing: Option<Hearing>,
) -> Result<F::Output, Outcome> {
    let alarm = Arc::new(Alarm {
        notice: Notice::new(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&alarm));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        match alarm.wait(awaited, deadline, hearing) {
            Outcome::Ready => {}
            Outcome::Summoned => drop(summons::attend()),
            other => return Err(other),
        }
    }
}

/// The target of one call's wakers. They share it, so that it still exists for a late one.
struct Alarm {
    notice: Notice,
    /// Whether there has been a wake since the last wait; only a hint to yield.
    woken: AtomicBool,
}

impl Alarm {
    fn wait(&self, awaited: Awaited, deadline: Deadline, hearing: Option<Hearing>) -> Outcome {
        // Relaxed: a hint, which is exact for this thread's own wakes, the ones that it is for.
        if self.woken.load(Ordering::Relaxed)
            && let Some(core) = vthread::current()
        {
            // Woken during the poll. A future that woke itself wants others to run, and the event
            // that it waits for may come from a virtual thread that needs this carrier.
            suspend(core, After::MakeWay);
        }
        let outcome = self.notice.wait(awaited, deadline, hearing);
        self.woken.store(false, Ordering::Relaxed); // Relaxed: as above.
        outcome
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed); // Relaxed: see `wait`.
        self.notice.give();
    }
}
