//! Scoped threads, like [`std::thread::scope`], on all carriers.

use super::group::{self, Member};
use super::join::RawHandle;
use super::park::park_for;
use super::{Builder, Thread, current};
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::awaited::{Awaited, Kind};
use pirn_rt::vthread::identity;
use pirn_rt::vthread::record::Attributes;
use pirn_rt::vthread::wait_word::Hearing;
use pirn_rt::vthread::{Ready, ThreadRef};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

/// The data that a scope and its threads share.
struct ScopeData {
    /// By which dumps find the scope's threads.
    id: u64,
    running: AtomicUsize,
    /// The number of threads that panicked and whose panic no `join` has taken.
    panics: AtomicUsize,
    owner: Thread,
}

impl ScopeData {
    fn enter(&self) {
        // Relaxed: the thread that increments is the owner or keeps the scope open.
        self.running.fetch_add(1, Ordering::Relaxed);
    }
}

/// The thread's own reference: when it has counted itself out, the scope may be gone.
impl Member for Arc<ScopeData> {
    fn panicked(&self) {
        // Relaxed: read after the Acquire of `running`.
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    fn ended(&self) {
        // Release: pairs with the owner's Acquire, so that all that the thread did is visible after
        // the scope.
        if self.running.fetch_sub(1, Ordering::Release) == 1 {
            self.owner.unpark();
        }
    }
}

/// A scope to spawn threads in. See [`scope`].
///
/// # Examples
/// ```
/// use pirn::thread::{self, Scope};
///
/// fn double_all<'scope>(s: &'scope Scope<'scope, '_>, numbers: &'scope mut [i32]) {
///     for number in numbers {
///         s.spawn(|| *number *= 2);
///     }
/// }
/// let mut numbers = [1, 2, 3];
/// thread::scope(|s| double_all(s, &mut numbers));
/// assert_eq!(numbers, [2, 4, 6]);
/// ```
pub struct Scope<'scope, 'env: 'scope> {
    data: Arc<ScopeData>,
    // Invariant in both lifetimes, like std's.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Creates a scope for virtual threads that borrow from their parent's stack.
///
/// All threads of the scope that have not been joined are joined before this function returns.
///
/// # Panics
/// If a thread panicked that the program did not join itself.
///
/// # Examples
/// ```
/// use pirn::thread;
///
/// let mut numbers = vec![1, 2, 3];
/// let mut sum = 0;
/// thread::scope(|s| {
///     s.spawn(|| numbers.push(4));
///     s.spawn(|| sum = 1 + 1);
/// });
/// assert_eq!((numbers.len(), sum), (4, 2));
/// ```
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let scope = Scope {
        data: Arc::new(ScopeData {
            id: identity::next_id(),
            running: AtomicUsize::new(0),
            panics: AtomicUsize::new(0),
            owner: current(),
        }),
        scope: PhantomData,
        env: PhantomData,
    };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    // Acquire: pairs with the Release in `leave`.
    while scope.data.running.load(Ordering::Acquire) != 0 {
        park_for(Awaited::new(Kind::Scope, scope.data.id));
    }
    match result {
        Err(payload) => resume_unwind(payload),
        // Relaxed: see `panicked`.
        Ok(_) if scope.data.panics.load(Ordering::Relaxed) > 0 => {
            panic!("a scoped thread panicked")
        }
        Ok(result) => result,
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a virtual thread in this scope.
    ///
    /// # Panics
    /// If the thread cannot be created; [`Builder::spawn_scoped`] returns the error instead.
    ///
    /// # Examples
    /// ```
    /// let words = ["warp", "weft!"];
    /// let lengths = pirn::thread::scope(|s| {
    ///     let handles = words.each_ref().map(|word| s.spawn(|| word.len()));
    ///     handles.map(|handle| handle.join().unwrap())
    /// });
    /// assert_eq!(lengths, [4, 5]);
    /// ```
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        match Builder::new().spawn_scoped(self, f) {
            Ok(handle) => handle,
            Err(e) => panic!("failed to spawn a virtual thread: {e}"),
        }
    }

    /// Makes a thread of this scope, which the scope waits for. Returns `None` if there is no
    /// memory.
    pub(super) fn allocate<F, T>(
        &self,
        attributes: Attributes,
        closure: F,
    ) -> Option<(ThreadRef, Ready)>
    where
        F: FnOnce() -> T,
    {
        let (thread, ready) = group::allocate(attributes, closure, Arc::clone(&self.data))?;
        thread.set_scope(self.data.id);
        self.data.enter();
        Some((thread, ready))
    }

    /// Makes the handle of a thread of this scope.
    pub(super) fn handle_of<T>(&'scope self, raw: RawHandle<T>) -> ScopedJoinHandle<'scope, T> {
        ScopedJoinHandle {
            raw,
            scope: &self.data,
        }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("running", &self.data.running.load(Ordering::Relaxed)) // Relaxed: a snapshot.
            .field("owner", &self.data.owner)
            .finish_non_exhaustive()
    }
}

/// The right to wait for a scoped thread's end and take its result.
///
/// # Examples
/// ```
/// use pirn::thread::{self, ScopedJoinHandle};
/// let words = ["warp", "weft!"];
/// let total: usize = thread::scope(|s| {
///     let handles: Vec<ScopedJoinHandle<'_, usize>> =
///         words.iter().map(|word| s.spawn(|| word.len())).collect();
///     handles.into_iter().map(|handle| handle.join().unwrap()).sum()
/// });
/// assert_eq!(total, 9);
/// ```
pub struct ScopedJoinHandle<'scope, T> {
    raw: RawHandle<T>,
    scope: &'scope ScopeData,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the thread to end and returns its result.
    ///
    /// # Errors
    /// The panic's payload, if the thread panicked.
    ///
    /// # Examples
    /// ```
    /// let word = String::from("weft");
    /// let length = pirn::thread::scope(|s| s.spawn(|| word.len()).join().unwrap());
    /// assert_eq!(length, 4);
    /// ```
    pub fn join(self) -> super::Result<T> {
        let result = self.raw.join();
        if result.is_err() {
            self.scope.panics.fetch_sub(1, Ordering::Relaxed); // Relaxed: see `panicked`.
        }
        result
    }

    /// Waits as [`join`](Self::join) does, but for at most `timeout`.
    ///
    /// # Errors
    /// The handle, if the thread has not ended by then. (A panic of the thread is in the inner
    /// result.)
    ///
    /// # Panics
    /// If a thread joins itself.
    pub fn join_timeout(self, timeout: Duration) -> Result<super::Result<T>, Self> {
        self.join_until(Deadline::after(timeout), None)
    }

    /// Waits as [`join`](Self::join) does, but only until the *waiting* thread is
    /// [interrupted](Thread::interrupt). The scope itself waits for the thread in any case.
    ///
    /// # Errors
    /// The handle, if the waiting thread is or has been interrupted before the other one has ended.
    /// The flag stays set.
    ///
    /// # Panics
    /// If a thread joins itself.
    ///
    /// # Examples
    /// ```
    /// use pirn::thread;
    ///
    /// thread::current().interrupt();
    /// let result = thread::scope(|s| {
    ///     let worker = s.spawn(thread::park_interruptible);
    ///     let worker = worker.join_interruptible().unwrap_err();
    ///     worker.thread().interrupt(); // passed on
    ///     worker.join().unwrap()
    /// });
    /// assert_eq!(result, Err(thread::Interrupted));
    /// # thread::take_interrupt();
    /// ```
    pub fn join_interruptible(self) -> Result<super::Result<T>, Self> {
        self.join_until(Deadline::NEVER, Some(Hearing::Always))
    }

    fn join_until(
        self,
        deadline: Deadline,
        hearing: Option<Hearing>,
    ) -> Result<super::Result<T>, Self> {
        match self.raw.has_ended_by(deadline, hearing) {
            true => Ok(self.join()),
            false => Err(self),
        }
    }

    /// Returns the thread.
    pub fn thread(&self) -> &Thread {
        self.raw.thread()
    }

    /// Returns whether the thread has ended: [`join`](Self::join) would not block.
    pub fn is_finished(&self) -> bool {
        self.raw.is_finished()
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScopedJoinHandle")
            .field(self.thread())
            .finish()
    }
}
