//! Callbacks for interrupts.
//!
//! Few threads have listeners, so they live in side tables keyed by thread; a bit in the wait word
//! says whether to look. The tables are sharded because a scope interrupts all its members at once.

use super::{Panic, ThreadId, current};
use core::fmt;
use core::marker::PhantomData;
use pirn_rt::poison::locked;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

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

static LISTENERS: [Mutex<Table>; TABLES] = [const { Mutex::new(BTreeMap::new()) }; TABLES];

/// Locks a thread's table. Ignores poisoning: the tables are valid even after a callback has
/// panicked.
fn table(thread: ThreadId) -> MutexGuard<'static, Table> {
    locked(&LISTENERS[thread.number() as usize % TABLES])
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
pub fn on_interrupt(callback: impl FnOnce() + Send + 'static) -> OnInterrupt {
    let thread = current();
    let listener = Arc::new(Listener::new(Box::new(callback)));
    table(thread.id())
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
    /// The guard belongs to the thread whose interrupts it hears: not `Send`.
    of_this_thread: PhantomData<*const ()>,
}

impl Drop for OnInterrupt {
    fn drop(&mut self) {
        let mut all = table(self.thread);
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
pub(crate) fn tell(thread: ThreadId) {
    let listeners = table(thread).get(&thread).cloned();
    for listener in listeners.into_iter().flatten() {
        listener.call();
    }
}
