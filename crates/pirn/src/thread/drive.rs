//! Polling a future on the calling thread.
//!
//! Between two polls the thread waits for a signal of this one call: not for its park permit, which
//! belongs to the code around, and which an interrupt gives as well. A wake that comes during a
//! poll stays in the signal for the wait after it; one that comes after the call finds a signal
//! that nobody waits for.

use crate::blocking::notice::Notice;
use crate::blocking::wait::Outcome;
use crate::time::Deadline;
use crate::vthread;
use crate::vthread::mount::{After, suspend};
use crate::vthread::wait_word::Hearing;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;

/// Polls a future until it is ready, or until the wait between two polls ends otherwise than by a
/// wake: at the deadline, or by an interruption, if that is heard.
pub(crate) fn drive<F: Future + ?Sized>(
    mut future: Pin<&mut F>,
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
        match alarm.wait(deadline, hearing) {
            Outcome::Ready => {}
            other => return Err(other),
        }
    }
}

/// What the waker of one call wakes: the wakers share it, so a late one finds it still there.
struct Alarm {
    notice: Notice,
    /// Whether there has been a wake since the last wait: only a hint to yield.
    woken: AtomicBool,
}

impl Alarm {
    fn wait(&self, deadline: Deadline, hearing: Option<Hearing>) -> Outcome {
        // Relaxed: a hint, and certain for the wakes that it is for, this thread's own.
        if self.woken.load(Ordering::Relaxed)
            && let Some(core) = vthread::current()
        {
            // Woken during the poll. If the future did that itself, it wants others to run, and
            // what it waits for may be done by a virtual thread that needs this carrier.
            suspend(core, After::MakeWay);
        }
        let outcome = self.notice.wait(deadline, hearing);
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
