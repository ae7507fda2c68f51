//! Interruption, seen from the interrupted thread: the flag, waits that it ends, and callbacks.

use super::{Panic, ThreadId, current};
use core::fmt;
use core::marker::PhantomData;
use core::ptr;
use pirn_rt::blocking;
use pirn_rt::poison::{PerProcess, locked};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_word::{Interruptible, WaitWord};
use pirn_rt::vthread::{self, identity::Platform};
use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

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
    match blocking::sleep_until(Deadline::after(duration), Interruptible::Always) {
        true => Ok(()),
        false => Err(Interrupted),
    }
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

// Few threads have listeners, so they live in side tables keyed by thread; a bit in the wait word
// says whether to look. The tables are sharded because a scope interrupts all its members at once.

type Callback = Box<dyn FnOnce() + Send>;

/// A callback for one interrupt.
struct Listener {
    /// The callback, until it is called or no longer wanted.
    callback: Mutex<Option<Callback>>,
    /// Locked while it is called.
    call: Mutex<()>,
}

type Table = BTreeMap<ThreadId, Vec<Arc<Listener>>>;

const TABLES: usize = 64;

struct Tables([Mutex<Table>; TABLES]);

static LISTENERS: PerProcess<Tables> = PerProcess::new();

/// Forgets the listeners of the parent: its threads may have been changing the tables, and calling
/// them.
pub(crate) fn after_fork() {
    LISTENERS.after_fork();
}

impl Default for Tables {
    fn default() -> Tables {
        Tables([const { Mutex::new(BTreeMap::new()) }; TABLES])
    }
}

impl Tables {
    /// Locks a thread's table. Ignores poisoning: the tables are valid even after a callback has
    /// panicked.
    fn of(&self, thread: ThreadId) -> MutexGuard<'_, Table> {
        locked(&self.0[thread.number() as usize % TABLES])
    }
}

impl Listener {
    fn new(callback: Callback) -> Listener {
        Listener {
            callback: Mutex::new(Some(callback)),
            call: Mutex::new(()),
        }
    }

    /// Calls the callback, once. A later caller does not wait for the end of the call: it may be
    /// the callback itself, if threads interrupt each other.
    fn call(&self) {
        let mut callback = locked(&self.callback);
        if let Some(callback_once) = callback.take() {
            // Locked before the other lock is released, so that `forget` finds it locked.
            let _call = locked(&self.call);
            drop(callback);
            // The hook has reported its panic. The other listeners must still be told, and the
            // interrupter has more to do.
            let _ = Panic::catch(callback_once);
        }
    }

    /// Removes the callback, so that it is no longer called. Waits for the end of a call that is
    /// under way.
    fn forget(&self) {
        let unused = locked(&self.callback).take();
        drop(unused);
        drop(locked(&self.call));
    }
}

/// Calls `callback` when the running thread is [interrupted](super::Thread::interrupt), on the
/// interrupter's thread; at once and on the running thread if it has been interrupted already. The
/// callback is called at most once, and never after the guard has been dropped: dropping waits for
/// a call that is under way, and makes a call that is due.
///
/// Use this to end waits that an interrupt does not end by itself: close the object that the thread
/// waits for, or wake the thread. (C++ has it as `std::stop_callback`.) The callback should be
/// short, and must not drop its own guard. If it panics, the panic is reported and goes no further.
/// In the child of a fork, callbacks of its parent are not called.
///
/// # Examples
/// A wait for a condition variable, whose loop would ignore the one spurious wake-up:
/// ```
/// use pirn::thread;
/// use std::sync::{Arc, Condvar, Mutex};
///
/// let shared = Arc::new((Mutex::new(false), Condvar::new()));
/// let waiter = thread::spawn(move || {
///     let waker = Arc::clone(&shared);
///     let _guard = thread::on_interrupt(move || {
///         let _locked = waker.0.lock().unwrap();
///         waker.1.notify_all();
///     });
///     let (ready, changed) = &*shared;
///     let ready = changed.wait_while(ready.lock().unwrap(), |ready| !*ready && !thread::is_interrupted());
///     *ready.unwrap()
/// });
/// waiter.thread().interrupt();
/// assert!(!waiter.join().unwrap());
/// ```
///
/// A wait for a channel. The same is one more arm of the `select!` of other crates of channels:
/// ```
/// use pirn::thread;
/// use std::sync::mpsc;
///
/// let (sender, interrupted) = mpsc::channel::<()>();
/// let _guard = thread::on_interrupt(move || drop(sender));
/// # thread::current().interrupt();
/// assert!(interrupted.recv().is_err()); // as soon as this thread is interrupted
/// # thread::take_interrupt();
/// ```
pub fn on_interrupt(callback: impl FnOnce() + Send + 'static) -> OnInterrupt {
    let thread = current();
    let listener = Arc::new(Listener::new(Box::new(callback)));
    let tables = LISTENERS.get();
    tables
        .of(thread.id())
        .entry(thread.id())
        .or_default()
        .push(Arc::clone(&listener));
    // An interrupter after this call sees the bit and finds the listener.
    if thread.wait_word().listen() {
        listener.call();
    }
    OnInterrupt {
        listener,
        thread: thread.id(),
        tables,
        of_this_thread: PhantomData,
    }
}

/// Keeps a callback of [`on_interrupt`] registered.
///
/// # Examples
/// ```
/// use pirn::thread::{self, OnInterrupt};
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// static HEARD: AtomicBool = AtomicBool::new(false);
/// let guard: OnInterrupt = thread::on_interrupt(|| HEARD.store(true, Ordering::Relaxed));
/// drop(guard);
/// thread::current().interrupt();
/// assert!(!HEARD.load(Ordering::Relaxed)); // not called any more
/// ```
#[must_use = "the callback is called only as long as this exists"]
pub struct OnInterrupt {
    listener: Arc<Listener>,
    thread: ThreadId,
    /// The tables that the listener is in.
    tables: &'static Tables,
    /// The guard belongs to the thread whose interrupts call it: not `Send`.
    of_this_thread: PhantomData<*const ()>,
}

impl Drop for OnInterrupt {
    fn drop(&mut self) {
        if !ptr::eq(self.tables, LISTENERS.get()) {
            return; // Of the parent process.
        }
        let mut all = self.tables.of(self.thread);
        if let Some(listeners) = all.get_mut(&self.thread) {
            listeners.retain(|listener| !Arc::ptr_eq(listener, &self.listener));
            if listeners.is_empty() {
                all.remove(&self.thread);
            }
        }
        drop(all);
        // The interrupter sets the flag first, and may not have called us yet.
        if super::is_interrupted() {
            self.listener.call();
        }
        self.listener.forget();
    }
}

impl fmt::Debug for OnInterrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnInterrupt")
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

/// Calls all listeners of a thread.
pub(crate) fn tell_listeners(thread: ThreadId) {
    let listeners = LISTENERS.get().of(thread).get(&thread).cloned();
    for listener in listeners.into_iter().flatten() {
        listener.call();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fork_while;
    use std::sync::mpsc;

    #[test]
    fn the_child_of_a_fork_has_listeners_whatever_its_parent_has_locked() {
        let of_parent = on_interrupt(|| ());
        let hold = |meanwhile: &dyn Fn()| {
            let _all = LISTENERS.get().0.each_ref().map(locked);
            meanwhile();
        };
        fork_while(hold, || {
            let (tell, told) = mpsc::channel();
            let own = on_interrupt(move || tell.send(()).unwrap());
            current().interrupt();
            drop((own, of_parent));
            told.recv().unwrap();
        });
    }
}
