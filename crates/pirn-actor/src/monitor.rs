//! Monitors of an actor's end.

use crate::ending::Watching;
use crate::error::Exit;
use crate::life::Actor;
use crate::poison::locked;
use crate::time::{Late, Limit};
use core::time::Duration;
use core::{fmt, mem};
use pirn::thread::{self, Interrupted, Thread};
use std::sync::{Arc, Mutex};

/// Reports the end of one actor. It leaves nothing in the actor when it is dropped.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Exit};
///
/// let careless = actor::consumer(|(): ()| panic!("oh no"));
/// let monitor = careless.monitor();
/// careless.send(()).unwrap();
/// let Exit::Failed(failure) = monitor.recv().unwrap() else { panic!("it has failed") };
/// assert_eq!(failure.to_string(), "panicked: oh no");
/// ```
pub struct Monitor {
    told: Arc<Mutex<Watched>>,
    /// The watch, dropped with the monitor.
    _watching: Option<Watching>,
}

#[derive(Default)]
struct Watched {
    exit: Option<Exit>,
    waiters: Vec<Thread>,
}

impl Monitor {
    pub(crate) fn of(watched: &Arc<dyn Actor>) -> Monitor {
        let (tell, monitor) = Monitor::new();
        let watcher = Box::new(move |exit: &Exit| tell(exit.clone()));
        Monitor {
            _watching: Some(Watching::begin(watched, watcher)),
            ..monitor
        }
    }

    /// Makes a monitor, and the function that reports the end to it: for a receiver that is not an
    /// actor of this program. If the function is dropped without a call, the monitor waits for
    /// ever.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Exit, Monitor};
    ///
    /// let (tell, monitor) = Monitor::new();
    /// tell(Exit::NodeLost);
    /// assert_eq!(monitor.try_recv(), Some(Exit::NodeLost));
    /// ```
    pub fn new() -> (impl FnOnce(Exit) + Send + 'static, Monitor) {
        let watched = Arc::new(Mutex::new(Watched::default()));
        let told = Arc::clone(&watched);
        let tell = move |exit| {
            let mut told = locked(&told);
            told.exit = Some(exit);
            let waiters = mem::take(&mut told.waiters);
            drop(told);
            waiters.iter().for_each(Thread::unpark);
        };
        let monitor = Monitor {
            told: watched,
            _watching: None,
        };
        (tell, monitor)
    }

    /// Waits for the end, and returns the exit. Returns the same exit again if called again.
    ///
    /// # Errors
    /// The running thread was interrupted.
    pub fn recv(&self) -> Result<Exit, Interrupted> {
        Ok(self
            .wait(Limit::NEVER)?
            .expect("without a time limit it has ended"))
    }

    /// Waits for the end for as long as `timeout`.
    ///
    /// # Errors
    /// The running thread was interrupted.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Option<Exit>, Interrupted> {
        self.wait(Limit::after(timeout))
    }

    /// Returns how the actor has ended, if it has.
    pub fn try_recv(&self) -> Option<Exit> {
        locked(&self.told).exit.clone()
    }

    fn wait(&self, limit: Limit) -> Result<Option<Exit>, Interrupted> {
        let here = thread::current();
        loop {
            {
                let mut watched = locked(&self.told);
                if watched.exit.is_some() {
                    return Ok(watched.exit.clone());
                }
                // A wake-up without a reason leaves it in the list.
                if watched
                    .waiters
                    .iter()
                    .all(|waiter| waiter.id() != here.id())
                {
                    watched.waiters.push(here.clone());
                }
            }
            let Err(late) = limit.park() else { continue };
            let mut watched = locked(&self.told);
            watched.waiters.retain(|waiter| waiter.id() != here.id());
            return match late {
                Late::Interrupted => Err(Interrupted),
                Late::TimedOut => Ok(watched.exit.clone()),
            };
        }
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("exit", &self.try_recv())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Monitor;
    use crate::error::Exit;
    use pirn::thread;
    use std::time::Duration;

    #[test]
    fn several_threads_wait_for_the_same_end() {
        let (tell, monitor) = Monitor::new();
        let waiters = |count| {
            while super::locked(&monitor.told).waiters.len() != count {
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(|| monitor.recv().unwrap()));
            let late = scope.spawn(|| monitor.recv_timeout(Duration::from_millis(1)).unwrap());
            assert_eq!(late.join().unwrap(), None);
            waiters(3);
            tell(Exit::NodeLost);
            for thread in threads {
                assert_eq!(thread.join().unwrap(), Exit::NodeLost);
            }
        });
        waiters(0);
    }

    #[test]
    fn a_monitor_that_is_dropped_early_leaves_nothing_behind() {
        let actor = crate::spawn(());
        let monitors: Vec<_> = (0..1000).map(|_| actor.monitor()).collect();
        assert_eq!(actor.life().ending.watchers(), 1000);
        drop(monitors);
        assert_eq!(actor.life().ending.watchers(), 0);
    }
}
