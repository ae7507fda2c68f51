//! A panic as a value, and calls of code that may panic by code that goes on afterwards.

use core::any::Any;
use core::fmt;
use core::mem;
use pirn_rt::panic;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};

/// The panic of another thread, or of a call: its payload, in a form that can be part of an error.
///
/// Dropping it never panics. A payload may panic when it is dropped; the panic hook has reported
/// that by then.
///
/// # Examples
/// ```
/// use pirn::thread::{self, Panic};
///
/// let payload = thread::spawn(|| panic!("no thread left")).join().unwrap_err();
/// let panic = Panic::new(payload);
/// assert_eq!(panic.message(), Some("no thread left"));
/// assert_eq!(panic.to_string(), "panicked: no thread left");
/// ```
pub struct Panic(Box<dyn Any + Send>);

// SAFETY: a `&Panic` gives access to the payload only if that is a `&str` or a `String`, which are
// `Sync`; the payload's type id is constant.
unsafe impl Sync for Panic {}

// Like other errors: a payload is only passed on.
impl UnwindSafe for Panic {}
impl RefUnwindSafe for Panic {}

impl Panic {
    /// Calls `f` and returns its result, or its panic, as
    /// [`catch_unwind`](std::panic::catch_unwind) does.
    ///
    /// The caller decides whether data that `f` has left half changed may be used afterwards. The
    /// panic is not counted as one that ends a thread.
    ///
    /// # Errors
    /// `f` panicked.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread::Panic;
    ///
    /// let parse = |text: &str| Panic::catch(|| text.parse::<u8>().expect("a small number"));
    /// assert_eq!(parse("7").unwrap(), 7);
    /// assert!(parse("1000").unwrap_err().to_string().contains("a small number"));
    /// ```
    #[inline]
    pub fn catch<T>(f: impl FnOnce() -> T) -> Result<T, Panic> {
        catch_unwind(AssertUnwindSafe(f)).map_err(Panic)
    }

    /// Makes an error of the payload that [`JoinHandle::join`](crate::thread::JoinHandle::join) or
    /// [`catch_unwind`](std::panic::catch_unwind) returned.
    pub fn new(payload: Box<dyn Any + Send>) -> Panic {
        Panic(payload)
    }

    /// Returns the message, if the payload is a text, as `panic!` makes it.
    pub fn message(&self) -> Option<&str> {
        panic::message(&*self.0)
    }

    /// Returns the payload.
    pub fn into_payload(mut self) -> Box<dyn Any + Send> {
        self.take()
    }

    /// Continues the panic on this thread, without another message.
    pub fn resume(self) -> ! {
        std::panic::resume_unwind(self.into_payload())
    }

    /// Takes the payload, and leaves one whose drop does nothing.
    fn take(&mut self) -> Box<dyn Any + Send> {
        mem::replace(&mut self.0, Box::new(()))
    }
}

impl Drop for Panic {
    fn drop(&mut self) {
        panic::discard(self.take());
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message() {
            Some(message) => write!(f, "panicked: {message}"),
            None => f.write_str("panicked with a payload that is not a string"),
        }
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic").field(&self.message()).finish()
    }
}

impl std::error::Error for Panic {}
