//! Waiting for the end of all virtual threads.

use pirn_rt::runtime::{self, Runtime};
use pirn_rt::time::Deadline;
use pirn_rt::vthread;
use std::time::{Duration, Instant};

/// Waits until all other virtual threads have ended, at most for `timeout`, and returns whether
/// they have.
///
/// For the end of a program: when `main` returns, the process ends, and with it the threads that
/// still run. All virtual threads of the process count but the calling one: those of libraries,
/// too, and one that calls this function itself. An interrupt does not end the wait.
///
/// An end is noticed up to 5 ms later. That way the threads pay nothing for it.
///
/// # Examples
/// ```
/// use pirn::thread;
/// use std::time::Duration;
///
/// for i in 0..10 {
///     thread::spawn(move || thread::sleep(Duration::from_millis(i))); // detached
/// }
/// assert!(thread::quiesce(Duration::from_secs(60)));
/// ```
pub fn quiesce(timeout: Duration) -> bool {
    const LONGEST_PAUSE: Duration = Duration::from_millis(5);
    let Some(runtime) = runtime::get() else {
        return true;
    };
    let deadline = Deadline::after(timeout);
    let own = u64::from(vthread::current().is_some());
    let mut pause = Duration::from_micros(50);
    while alive(runtime) > own {
        if deadline.has_passed() {
            return false;
        }
        let left = deadline.instant().saturating_duration_since(Instant::now());
        super::sleep(pause.min(left).max(Duration::from_micros(1)));
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
    true
}

/// Returns the number of threads that have been started and have not ended.
fn alive(runtime: &Runtime) -> u64 {
    // The ends first: a thread is counted as started before it is counted as ended.
    let ended = runtime.sum(|counters| &counters.ended);
    let dropped = runtime.sum(|counters| &counters.dropped);
    let started = runtime.sum(|counters| &counters.started);
    started.saturating_sub(ended + dropped)
}
