//! Messages that are sent later: once, at a fixed rate, or with a pause after each.
//!
//! A timer has only a [`Target`] of its receiver, so it does not keep the receiver open, and it
//! ends with the receiver. A timer that finds the mailbox full does not wait, since all timers
//! share one thread:
//!
//! * a message that is sent once has its own place, whatever the capacity: there is one message per
//!   timer, and a lost time limit is worse than one more message in the mailbox;
//! * a message at a fixed rate is left out: the next one is due soon, and more of the same messages
//!   do not help a receiver that is behind;
//! * a message with a pause after each has its own place, too: there is only one at a time.
//!
//! Rejected: a thread per message that waits for room, which cannot be cancelled without a race;
//! and an attempt every few milliseconds, since senders that do wait for room always come first.

use super::timers::{self, Handled, Next, TimerHandle, later};
use crate::actor::{Context, Handler, Recipient, Sends, Target};
use crate::error::{Refusal, SendError};
use crate::mailbox::Patience;
use core::time::Duration;
use std::time::Instant;

/// The pause between attempts to send a one-off message to a receiver without room that is not an
/// actor of this crate.
const RETRY: Duration = Duration::from_millis(10);

/// Sends a message after `delay`.
///
/// The timer ends with the actor, and does not keep it open. There is always room for the message.
/// To [cancel](TimerHandle::cancel) the timer does not take a message out of the mailbox.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use std::time::{Duration, Instant};
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let alarm = actor::consumer(move |()| tell.send(Instant::now()).unwrap());
/// let start = Instant::now();
/// actor::time::send_after(&alarm, Duration::from_millis(10), ());
/// assert!(told.recv().unwrap() - start >= Duration::from_millis(10));
/// ```
pub fn send_after<M: Send + 'static>(
    to: &impl Recipient<M>,
    delay: Duration,
    message: M,
) -> TimerHandle {
    send_at(to, later(Instant::now(), delay), message)
}

/// Sends a message at a time: at once if that has passed. See [`send_after`].
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use std::time::{Duration, Instant};
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let alarm = actor::consumer(move |text: &str| tell.send(text).unwrap());
/// let (now, minute) = (Instant::now(), Duration::from_secs(60));
/// let tea = actor::time::send_at(&alarm, now + 3 * minute, "the tea is ready");
/// actor::time::send_at(&alarm, now, "a cup of tea?");
/// assert_eq!(told.recv().unwrap(), "a cup of tea?");
/// assert!(tea.cancel());
/// ```
pub fn send_at<M: Send + 'static>(to: &impl Recipient<M>, at: Instant, message: M) -> TimerHandle {
    let mut message = Some(message);
    start(to.target(), at, move |to, _, _| {
        let Some(taken) = message.take() else {
            return Next::Over;
        };
        match to.tell(taken, Patience::Beyond) {
            Err(error) if error.is_full() => {
                message = Some(error.into_message());
                Next::At(later(Instant::now(), RETRY))
            }
            Ok(()) | Err(_) => Next::Over,
        }
    })
}

/// Sends a message once per period, at a fixed rate.
///
/// The times are one period apart, however long a message takes, and do not drift. A message is
/// left out, not sent later, if there is no room in the mailbox, or if the whole program has slept
/// over its time. If a slow actor gets no other messages, its mailbox fills with these: its
/// capacity limits how many it may be behind. See also [`every_after`].
///
/// The timer ends with the actor, and does not keep it open.
///
/// # Panics
/// If the period is zero.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use std::time::{Duration, Instant};
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let ticks = actor::consumer(move |()| tell.send(Instant::now()).unwrap());
/// let start = Instant::now();
/// let timer = actor::time::every(&ticks, Duration::from_millis(5), ());
/// assert!(told.iter().nth(2).unwrap() - start >= Duration::from_millis(15));
/// timer.cancel();
/// ```
pub fn every<M: Clone + Send + 'static>(
    to: &impl Recipient<M>,
    period: impl Into<Period>,
    message: M,
) -> TimerHandle {
    let period = period.into();
    let length = period.length;
    assert!(!length.is_zero(), "a rate without a period");
    repeat(
        to.target(),
        period,
        move |to, _| to.tell(message.clone(), Patience::None),
        move |due| Next::At(next(due, length, Instant::now())),
    )
}

/// Sends a message when the one before was handled and `pause` has passed since then.
///
/// There is never more than one such message. If its handler fails and the actor is restarted, the
/// next one is still sent. A timer cannot know when a process has handled a message: there the
/// pause begins when the message is sent.
///
/// The timer ends with the actor, and does not keep it open. There is always room for the message.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use pirn_actor::time::Period;
/// use std::time::Duration;
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let look = actor::consumer(move |()| tell.send("nothing new").unwrap());
/// let hourly = actor::time::every_after(&look, Duration::from_secs(3600), ());
/// let often = actor::time::every_after(&look, Period::new(Duration::from_millis(1)).times(2), ());
/// assert_eq!(told.iter().take(2).count(), 2);
/// assert!(hourly.cancel());
/// ```
pub fn every_after<M: Clone + Send + 'static>(
    to: &impl Recipient<M>,
    pause: impl Into<Period>,
    message: M,
) -> TimerHandle {
    let pause = pause.into();
    let delay = pause.length;
    repeat(
        to.target(),
        pause,
        move |to, number| to.tell_tracked(message.clone(), Handled { number, delay }),
        |_| Next::Resting,
    )
}

impl<S: Send + 'static> Context<S> {
    /// Sends this actor a message after `delay`. See [`send_after`].
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{self as actor, Context, Handler};
    /// use std::time::Duration;
    ///
    /// struct Session {
    ///     closed: std::sync::mpsc::Sender<&'static str>,
    /// }
    /// struct Login;
    /// struct Expired;
    /// impl Handler<Login> for Session {
    ///     type Reply = ();
    ///     fn handle(&mut self, _: Login, context: &Context<Self>) {
    ///         context.send_after(Duration::from_millis(5), Expired);
    ///     }
    /// }
    /// impl Handler<Expired> for Session {
    ///     type Reply = ();
    ///     fn handle(&mut self, _: Expired, context: &Context<Self>) {
    ///         self.closed.send("good bye").unwrap();
    ///         context.stop();
    ///     }
    /// }
    /// let (closed, told) = std::sync::mpsc::channel();
    /// let session = actor::spawn(Session { closed });
    /// session.send(Login).unwrap();
    /// assert_eq!(told.recv().unwrap(), "good bye");
    /// ```
    pub fn send_after<M>(&self, delay: Duration, message: M) -> TimerHandle
    where
        S: Handler<M, Reply: 'static>,
        M: Send + 'static,
    {
        send_after(&Target::of_actor(self.cell()), delay, message)
    }

    /// Sends this actor a message once per period, at a fixed rate. See [`every`].
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{self as actor, Context, Exit, Handler};
    /// use pirn_actor::time::Period;
    /// use std::time::Duration;
    ///
    /// struct Countdown(u32);
    /// #[derive(Clone)]
    /// struct Tick;
    /// impl Handler<Period> for Countdown {
    ///     type Reply = ();
    ///     fn handle(&mut self, period: Period, context: &Context<Self>) {
    ///         context.every(period, Tick);
    ///     }
    /// }
    /// impl Handler<Tick> for Countdown {
    ///     type Reply = ();
    ///     fn handle(&mut self, _: Tick, context: &Context<Self>) {
    ///         self.0 -= 1;
    ///         if self.0 == 0 {
    ///             context.stop();
    ///         }
    ///     }
    /// }
    /// let countdown = actor::spawn(Countdown(3));
    /// countdown.send(Period::new(Duration::from_millis(1))).unwrap();
    /// assert_eq!(countdown.join(), Exit::Stopped); // and the timer with it
    /// ```
    ///
    /// # Panics
    /// If the period is zero.
    pub fn every<M>(&self, period: impl Into<Period>, message: M) -> TimerHandle
    where
        S: Handler<M, Reply: 'static>,
        M: Clone + Send + 'static,
    {
        every(&Target::of_actor(self.cell()), period, message)
    }

    /// Sends this actor a message when the one before was handled and `pause` has passed since
    /// then. See [`every_after`].
    pub fn every_after<M>(&self, pause: impl Into<Period>, message: M) -> TimerHandle
    where
        S: Handler<M, Reply: 'static>,
        M: Clone + Send + 'static,
    {
        every_after(&Target::of_actor(self.cell()), pause, message)
    }
}

/// Starts a timer that ends with its receiver.
fn start<M: 'static>(
    target: Target<M>,
    due: Instant,
    mut act: impl FnMut(&dyn Sends<M>, u64, Instant) -> Next + Send + 'static,
) -> TimerHandle {
    let receiver = target.sends().actor();
    if target.sends().has_ended() {
        return TimerHandle::OVER;
    }
    let act = move |number, due| act(target.sends(), number, due);
    let timer = timers::add(due, Box::new(act));
    if let Some(receiver) = receiver {
        timer.end_with(&*receiver);
    }
    timer
}

/// Starts a timer that sends by `send`, as often as the period says. `again` returns when it is
/// done the next time.
fn repeat<M: 'static>(
    target: Target<M>,
    period: Period,
    mut send: impl FnMut(&dyn Sends<M>, u64) -> Result<(), SendError<M>> + Send + 'static,
    again: impl Fn(Instant) -> Next + Send + 'static,
) -> TimerHandle {
    let mut left = period.times;
    if left == Some(0) {
        return TimerHandle::OVER;
    }
    let due = later(Instant::now(), period.first);
    start(target, due, move |to, number, due| {
        match send(to, number) {
            Ok(()) => left = left.map(|left| left - 1),
            Err(error) if *error.refusal() == Refusal::Closed => return Next::Over,
            Err(_) => {}
        }
        match left {
            Some(0) => Next::Over,
            _ => again(due),
        }
    })
}

/// Returns the first time after `now` that is a whole number of periods after `due`.
fn next(due: Instant, period: Duration, now: Instant) -> Instant {
    let late = now.saturating_duration_since(due).as_nanos() % period.as_nanos();
    let (seconds, nanos) = (late / 1_000_000_000, late % 1_000_000_000);
    // Both numbers fit: the remainder is less than the period, and `nanos` less than a second.
    let late = Duration::new(seconds as u64, nanos as u32);
    later(now.max(due), period - late)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_periods_apart_however_late_one_is() {
        let (start, ms) = (Instant::now(), Duration::from_millis(1));
        assert_eq!(next(start, 10 * ms, start), start + 10 * ms);
        assert_eq!(next(start, 10 * ms, start + 3 * ms), start + 10 * ms);
        // The second and the third times are left out.
        assert_eq!(next(start, 10 * ms, start + 35 * ms), start + 40 * ms);
        assert_eq!(next(start, 10 * ms, start + 40 * ms), start + 50 * ms);
        // The clock was read before `due`.
        assert_eq!(next(start + ms, 10 * ms, start), start + 11 * ms);
    }

    #[test]
    fn a_rate_in_nanoseconds_does_not_drift() {
        let (start, period) = (Instant::now(), Duration::from_nanos(333));
        let mut due = start;
        for _ in 0..3_000_000 {
            due = next(due, period, due + Duration::from_nanos(100));
        }
        assert_eq!(due - start, 3_000_000 * period);
    }
}
