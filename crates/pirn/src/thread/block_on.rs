//! Running a future on the calling thread.
//!
//! Between two polls the thread waits for a signal that belongs to this call. It does not use its
//! park permit, which belongs to the code around, and which an interrupt grants as well. A wake
//! during a poll stays in the signal for the next wait; a wake after the call sets a signal that no
//! thread waits for.

use super::Interrupted;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use pirn_rt::blocking::notify::Notify;
use pirn_rt::blocking::wait::Outcome;
use pirn_rt::sched::mount::{After, suspend};
use pirn_rt::sched::safepoint;
use pirn_rt::time::Deadline;
use pirn_rt::vthread;
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use pirn_rt::vthread::wait_word::Interruptible;
use std::sync::Arc;
use std::task::Wake;

/// What a thread that runs a future waits for.
const WAKER: WaitReason = WaitReason::new(Kind::Park, 0);

/// Runs a future to its end on the calling thread, and returns its output.
///
/// While the future is pending, a virtual thread is parked and a platform thread is blocked. The
/// waker may be used from any thread, at any time. Any future works as long as its waker is called
/// elsewhere: the types of an async runtime need that runtime's threads, and usually its context
/// (entered with `tokio::runtime::Handle::enter`, for example) when they are created.
///
/// An [interrupt](super::Thread::interrupt) does not end the wait; it does with
/// [`block_on_interruptible`]. The park permit is left alone. A `block_on` inside a future that is
/// being blocked on works; on an async runtime's own thread it keeps that thread from its other
/// tasks, as any blocking call does.
///
/// # Panics
/// If the future panics: the panic is passed on.
///
/// # Examples
/// ```
/// use pirn::thread;
///
/// let answer = thread::spawn(|| {
///     let weft = thread::spawn(|| 40);
///     pirn::block_on(async { weft.await.unwrap() + 2 })
/// });
/// assert_eq!(answer.join().unwrap(), 42);
/// ```
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    match drive(
        pin!(future.into_future()),
        WAKER,
        Deadline::NEVER,
        Interruptible::Never,
    ) {
        Ok(output) => output,
        Err(outcome) => unreachable!("a wait that can only be ended by a wake: {outcome:?}"),
    }
}

/// Runs a future on the calling thread to its end, or until it would wait while the thread is
/// [interrupted](super::Thread::interrupt).
///
/// On an interrupt the future is dropped before this returns, which is how async code is cancelled.
/// A future that finishes without waiting does so on an interrupted thread as well, so that its
/// output is not lost. This works on platform threads too. See [`block_on`] for the rest.
///
/// # Errors
/// [`Interrupted`]: the future was dropped. The flag stays set.
///
/// # Panics
/// If the future panics, also while it is dropped: the panic is passed on.
///
/// # Examples
/// ```
/// use pirn::thread::{self, Interrupted};
///
/// let waiting = thread::spawn(|| pirn::block_on_interruptible(std::future::pending::<()>()));
/// waiting.thread().interrupt();
/// assert_eq!(waiting.join().unwrap(), Err(Interrupted));
///
/// thread::current().interrupt();
/// assert_eq!(pirn::block_on_interruptible(async { 42 }), Ok(42));
/// # thread::take_interrupt();
/// ```
pub fn block_on_interruptible<F: IntoFuture>(future: F) -> Result<F::Output, Interrupted> {
    drive(
        pin!(future.into_future()),
        WAKER,
        Deadline::NEVER,
        Interruptible::Always,
    )
    .map_err(|_| Interrupted)
}

/// Polls a future until it is ready, or until a wait between two polls ends at the deadline or, if
/// `interruptible` allows it, by an interrupt.
pub(crate) fn drive<F: Future + ?Sized>(
    mut future: Pin<&mut F>,
    reason: WaitReason,
    deadline: Deadline,
    interruptible: Interruptible,
) -> Result<F::Output, Outcome> {
    let alarm = Arc::new(Alarm {
        notify: Notify::new(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&alarm));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        match alarm.wait(reason, deadline, interruptible) {
            Outcome::Ready => {}
            Outcome::SafePoint => drop(safepoint::run_pending()),
            other => return Err(other),
        }
    }
}

/// The target of one call's wakers. They share it, so that it still exists for a late one.
struct Alarm {
    notify: Notify,
    /// Whether there has been a wake since the last wait: then the thread yields first.
    woken: AtomicBool,
}

impl Alarm {
    fn wait(
        &self,
        reason: WaitReason,
        deadline: Deadline,
        interruptible: Interruptible,
    ) -> Outcome {
        // Relaxed: exact for this thread's own wakes, which it is for; others may be seen late.
        if self.woken.load(Ordering::Relaxed)
            && let Some(core) = vthread::parkable()
        {
            // Woken during the poll. A future that woke itself wants others to run, and the event
            // that it waits for may come from a virtual thread that needs this carrier.
            suspend(core, After::MakeWay);
        }
        let outcome = self.notify.wait(reason, deadline, interruptible);
        // Relaxed: exact for this thread's own wakes, as above.
        self.woken.store(false, Ordering::Relaxed);
        outcome
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed); // Relaxed: see `wait`.
        self.notify.notify();
    }
}
