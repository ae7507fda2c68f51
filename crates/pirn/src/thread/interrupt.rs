//! Interruption, seen from the interrupted thread.

use core::fmt;
use pirn_rt::blocking;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_word::{Hearing, WaitWord};
use pirn_rt::vthread::{self, identity::Platform};
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The error of a wait that did not start or ended early, because the thread has been
/// [interrupted](super::Thread::interrupt).
///
/// The flag is still set. As an [`io::Error`] it is `ECANCELED`, the error of interrupted input and
/// output.
///
/// # Examples
/// ```
/// let error = std::io::Error::from(pirn::thread::Interrupted);
/// assert!(pirn::thread::is_interrupt(&error));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread was interrupted")
    }
}

impl Error for Interrupted {}

impl From<Interrupted> for io::Error {
    fn from(_: Interrupted) -> io::Error {
        io::Error::from_raw_os_error(blocking::INTERRUPTED.0)
    }
}

/// Returns whether an error says that the thread was [interrupted](super::Thread::interrupt): the
/// error itself, an [`io::Error`] in it, or one of its [sources](Error::source) is `ECANCELED` or
/// [`Interrupted`].
///
/// Crates wrap errors of input and output in their own errors; this function finds them as long as
/// they are kept as a source. (`ECANCELED` has few other uses in Linux: asynchronous input and
/// output, and timers of file descriptors when the clock is set.)
///
/// # Examples
/// ```
/// use std::io;
/// let interrupt = io::Error::from_raw_os_error(libc::ECANCELED);
/// assert!(pirn::thread::is_interrupt(&interrupt));
/// assert!(pirn::thread::is_interrupt(&io::Error::other(interrupt)));
/// assert!(!pirn::thread::is_interrupt(&io::Error::from(io::ErrorKind::UnexpectedEof)));
/// ```
pub fn is_interrupt(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<Interrupted>() {
            return true;
        }
        next = match pointee(error).unwrap_or(error).downcast_ref::<io::Error>() {
            Some(error) if error.raw_os_error() == Some(blocking::INTERRUPTED.0) => return true,
            // `source` of an `io::Error` is the source of the error inside, and would skip that
            // error.
            Some(error) => error.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    false
}

/// Returns the error that a pointer to an error points to: the pointer's `source` is that error's
/// source, and would skip it.
fn pointee<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(error) = error.downcast_ref::<Arc<io::Error>>() {
        return Some(&**error);
    }
    let boxed = error.downcast_ref::<Box<io::Error>>()?;
    Some(&**boxed)
}

/// Calls `f` with the running thread's word.
fn word<R>(f: impl FnOnce(&WaitWord) -> R) -> Option<R> {
    match vthread::current() {
        Some(core) => Some(f(&core.wait)),
        None => Platform::with_wait_word(f),
    }
}

/// Returns whether the running thread has been [interrupted](super::Thread::interrupt). Does not
/// clear the flag.
///
/// Code that computes for a long time should check it now and then; it costs a nanosecond.
///
/// # Examples
/// ```
/// use pirn::thread;
/// let computing = thread::spawn(|| {
///     let mut rounds = 0u64;
///     while !thread::is_interrupted() {
///         rounds += 1;
///         thread::yield_now();
///     }
///     rounds
/// });
/// computing.thread().interrupt();
/// computing.join().unwrap();
/// ```
#[inline]
pub fn is_interrupted() -> bool {
    word(WaitWord::is_interrupted).unwrap_or(false)
}

/// Returns whether the running thread has been [interrupted](super::Thread::interrupt), and clears
/// the flag.
///
/// After that the thread can wait again, for example for cleanup before it ends.
///
/// # Examples
/// ```
/// use pirn::thread;
/// thread::current().interrupt();
/// assert!(thread::take_interrupt());
/// assert!(!thread::take_interrupt());
/// ```
pub fn take_interrupt() -> bool {
    word(WaitWord::take).unwrap_or(false)
}

/// Puts the running thread to sleep for at least `duration`, unless it is interrupted.
///
/// Works on platform threads as well.
///
/// # Errors
/// [`Interrupted`], at once if the thread has been interrupted already. The flag stays set.
///
/// # Examples
/// ```
/// use pirn::thread::{self, Interrupted};
/// use std::time::Duration;
/// let sleeper = thread::spawn(|| thread::sleep_interruptible(Duration::from_secs(3600)));
/// sleeper.thread().interrupt();
/// assert_eq!(sleeper.join().unwrap(), Err(Interrupted));
/// ```
pub fn sleep_interruptible(duration: Duration) -> Result<(), Interrupted> {
    match blocking::sleep_until(Deadline::after(duration), Hearing::Always) {
        true => Ok(()),
        false => Err(Interrupted),
    }
}

/// Puts the running thread to sleep until `deadline`, unless it is interrupted.
///
/// # Errors
/// [`Interrupted`], at once if the thread has been interrupted already. The flag stays set.
///
/// # Examples
/// ```
/// use std::time::{Duration, Instant};
/// let deadline = Instant::now() + Duration::from_millis(2);
/// pirn::thread::sleep_until_interruptible(deadline)?;
/// assert!(Instant::now() >= deadline);
/// # Ok::<(), pirn::thread::Interrupted>(())
/// ```
pub fn sleep_until_interruptible(deadline: Instant) -> Result<(), Interrupted> {
    sleep_interruptible(deadline.saturating_duration_since(Instant::now()))
}

/// Parks the running thread as [`park`](super::park) does, unless it is interrupted.
///
/// # Errors
/// [`Interrupted`], at once if the thread has been interrupted already. The flag stays set.
///
/// # Examples
/// ```
/// use pirn::thread::{self, Interrupted};
/// let parked = thread::spawn(thread::park_interruptible);
/// parked.thread().interrupt();
/// assert_eq!(parked.join().unwrap(), Err(Interrupted));
/// ```
pub fn park_interruptible() -> Result<(), Interrupted> {
    unless_interrupted(super::park)
}

/// Parks the running thread as [`park_timeout`](super::park_timeout) does, unless it is
/// interrupted.
///
/// # Errors
/// [`Interrupted`], at once if the thread has been interrupted already. The flag stays set.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// assert_eq!(pirn::thread::park_timeout_interruptible(Duration::from_millis(1)), Ok(()));
/// ```
pub fn park_timeout_interruptible(timeout: Duration) -> Result<(), Interrupted> {
    unless_interrupted(|| super::park_timeout(timeout))
}

/// Parks between two checks of the flag. An interrupt after the first check makes the permit
/// available, so that `park` returns and the second check finds it.
fn unless_interrupted(park: impl FnOnce()) -> Result<(), Interrupted> {
    if !is_interrupted() {
        park();
    }
    match is_interrupted() {
        true => Err(Interrupted),
        false => Ok(()),
    }
}
