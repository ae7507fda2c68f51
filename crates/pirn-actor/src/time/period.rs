//! Periods: how often a timer sends.

use core::time::Duration;

/// How often a message is sent, when for the first time, and how many times.
///
/// A [`Duration`] is a period, too: without end, and for the first time after one such time.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use pirn_actor::time::Period;
/// use std::time::Duration;
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let ticks = actor::consumer(move |tick: &str| tell.send(tick).unwrap());
/// let millisecond = Duration::from_millis(1);
/// actor::time::every(&ticks, Period::new(millisecond).first_after(Duration::ZERO).times(3), "tick");
/// assert!(told.iter().take(3).eq(["tick"; 3]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub(super) length: Duration,
    pub(super) first: Duration,
    pub(super) times: Option<u64>,
}

impl Period {
    /// Returns a period of this length, without end. The first message comes after one period.
    pub fn new(length: Duration) -> Period {
        Period {
            length,
            first: length,
            times: None,
        }
    }

    /// Sets the time before the first message.
    pub fn first_after(mut self, delay: Duration) -> Period {
        self.first = delay;
        self
    }

    /// Sets the number of messages. A message that finds no room in the mailbox does not count.
    pub fn times(mut self, messages: u64) -> Period {
        self.times = Some(messages);
        self
    }
}

impl From<Duration> for Period {
    fn from(length: Duration) -> Period {
        Period::new(length)
    }
}
