//! Parking, sleeping and yielding.

use pirn_rt::blocking;
use pirn_rt::blocking::timer::Timer;
use pirn_rt::sched::{self, preempt};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::awaited::{Awaited, Kind};
use pirn_rt::vthread::wait_word::Hearing;
use pirn_rt::vthread::{self, Current, summons};
use std::time::{Duration, Instant};

/// Parks the running thread until its permit is available, and takes the permit.
///
/// May return spuriously, as [`std::thread::park`] may. On a platform thread it *is* that function.
/// An [interrupt](super::Thread::interrupt) makes the permit available, and so ends one `park`;
/// [`park_interruptible`](super::park_interruptible) reports it.
///
/// # Examples
/// ```
/// use pirn::thread;
/// let parked = thread::spawn(thread::park);
/// parked.thread().unpark();
/// parked.join().unwrap();
/// ```
pub fn park() {
    match vthread::current() {
        Some(core) => park_virtual(core, PERMIT, Deadline::NEVER),
        None => std::thread::park(),
    }
}

/// Does the same. `awaited` is for people: what the permit stands for.
pub(super) fn park_for(awaited: Awaited) {
    match vthread::current() {
        Some(core) => park_virtual(core, awaited, Deadline::NEVER),
        None => std::thread::park(),
    }
}

/// Parks the running thread until its permit is available or `timeout` has passed.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// pirn::thread::spawn(|| pirn::thread::park_timeout(Duration::from_millis(1))).join().unwrap();
/// ```
pub fn park_timeout(timeout: Duration) {
    match vthread::current() {
        Some(core) => {
            park_virtual(core, PERMIT, Deadline::after(timeout));
        }
        None => std::thread::park_timeout(timeout),
    }
}

/// What a parked thread waits for.
const PERMIT: Awaited = Awaited::new(Kind::Park, 0);

/// Parks a virtual thread. `awaited` as for [`park_for`].
fn park_virtual(core: Current, awaited: Awaited, deadline: Deadline) {
    if core.permit.try_consume() || !core.permit.begin_park() {
        // It may be that of a summons.
        summons::attend_if_summoned();
        return;
    }
    core.awaits.begin(awaited);
    if deadline.is_never() {
        vthread::mount::park(core);
    } else {
        core.awaits.until(deadline);
        let timer = Timer::for_permit(&core);
        // SAFETY: it is disarmed below, and the running thread stays.
        unsafe { timer.arm(core.runtime(), deadline) };
        vthread::mount::park(core);
        timer.disarm();
    }
    core.permit.end_park();
    summons::attend_if_summoned();
}

/// Puts the running thread to sleep for at least `duration`. Returns at once if that is zero, as
/// [`std::thread::sleep`] does; [`yield_now`] lets others run.
///
/// Returns early, once, on a virtual thread that is [interrupted](super::Thread::interrupt), and so
/// does [`std::thread::sleep`]; [`sleep_interruptible`](super::sleep_interruptible) reports the
/// interrupt.
///
/// # Examples
/// ```
/// use std::time::{Duration, Instant};
/// let start = Instant::now();
/// pirn::thread::spawn(|| pirn::thread::sleep(Duration::from_millis(2))).join().unwrap();
/// assert!(start.elapsed() >= Duration::from_millis(2));
/// ```
pub fn sleep(duration: Duration) {
    match vthread::current() {
        // Not a yield: a server whose handler slept for its delay of zero had its requests cut in
        // two by 10,000 others, and was behind with them by a fifth.
        Some(_) if duration.is_zero() => drop(summons::attend_if_summoned()),
        Some(_) => {
            blocking::sleep_until(Deadline::after(duration), Hearing::Sleep);
        }
        None => std::thread::sleep(duration),
    }
}

/// Puts the running thread to sleep until `deadline`. Returns at once if that has passed.
///
/// Returns early, once, on a virtual thread that is [interrupted](super::Thread::interrupt).
///
/// # Examples
/// ```
/// use std::time::{Duration, Instant};
/// let deadline = Instant::now() + Duration::from_millis(2);
/// pirn::thread::sleep_until(deadline);
/// assert!(Instant::now() >= deadline);
/// ```
pub fn sleep_until(deadline: Instant) {
    let left = || deadline.saturating_duration_since(Instant::now());
    if vthread::current().is_some() {
        return sleep(left());
    }
    loop {
        match left() {
            Duration::ZERO => return,
            left => std::thread::sleep(left),
        }
    }
}

/// Lets other threads run: the running virtual thread goes to the back of its carrier's queue.
///
/// If no other virtual thread can run there, the carrier gives its core to other OS threads, as
/// [`std::thread::yield_now`] does. So a loop that yields until a platform thread has done its part
/// does not use up that thread's processor time.
///
/// # Examples
/// ```
/// pirn::thread::spawn(pirn::thread::yield_now).join().unwrap();
/// ```
pub fn yield_now() {
    match vthread::current() {
        Some(core) => sched::yield_now(core),
        None => std::thread::yield_now(),
    }
}

/// Calls `f`, in which the running thread is not preempted.
///
/// A thread that computes for long is put aside in the middle of its code, so that others run
/// ([`Config::time_slice`](crate::Config::time_slice)). That is as invisible as it is to platform
/// threads. This function is for code that cares: that measures how long it takes, say, or uses
/// what belongs to the carrier and not to the thread, such as its CPU clock.
///
/// The thread may still wait, and other threads run then. On a platform thread, this function only
/// calls `f`.
///
/// # Examples
/// ```
/// use std::time::Instant;
/// pirn::thread::spawn(|| {
///     let elapsed = pirn::thread::no_preemption(|| {
///         let begin = Instant::now();
///         std::hint::black_box((0..1000).sum::<u64>());
///         begin.elapsed() // without the time of other virtual threads
///     });
///     assert!(elapsed.as_secs() < 10);
/// })
/// .join()
/// .unwrap();
/// ```
pub fn no_preemption<R>(f: impl FnOnce() -> R) -> R {
    preempt::without(f)
}
