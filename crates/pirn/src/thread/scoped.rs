//! Threads that belong to a group, which learns of their ends: threads of a scope, as in
//! [`std::thread::scope`], and of an executor.

use super::park::park_for;
use super::{Builder, JoinHandle, Thread, current};
use core::any::type_name;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};
use pirn_rt::sched::body::{self, Body};
use pirn_rt::sched::{self, ClosureBody};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::record::Attributes;
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use pirn_rt::vthread::wait_word::Interruptible;
use pirn_rt::vthread::{Ready, ThreadRef};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

/// What a group's thread tells it.
pub(crate) trait Member {
    /// The closure has panicked, or was dropped by a scheduler without a call.
    fn panicked(&self) {}

    /// The thread has ended: its result is published, or dropped if there is no handle. Called
    /// once. The caller uses nothing of the group afterwards but this member.
    fn ended(&self);
}

/// The body of a group's thread. The closure's body comes first, so that a handle finds the result
/// at the same place as in any other thread.
#[repr(C)]
struct GroupBody<T, F, M> {
    inner: ClosureBody<T, F>,
    member: M,
}

impl<T, F: FnOnce() -> T, M: Member> Body for GroupBody<T, F, M> {
    fn code() -> &'static str {
        type_name::<F>()
    }

    unsafe fn run(&self) {
        // SAFETY: the caller's contract.
        unsafe {
            self.inner.run();
            if self.inner.has_panicked() {
                self.member.panicked();
            }
        }
    }

    unsafe fn abandon(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.inner.abandon() };
        self.member.panicked();
    }

    unsafe fn drop_result(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.inner.drop_result() };
    }

    unsafe fn ended(&self) {
        self.member.ended();
    }
}

/// Makes a thread of a group, which will call `closure`. Returns `None` if there is no memory.
pub(crate) fn allocate_member<T, F: FnOnce() -> T, M: Member>(
    attributes: Attributes,
    closure: F,
    member: M,
) -> Option<(ThreadRef, Ready)> {
    let body = GroupBody {
        inner: ClosureBody::new(closure),
        member,
    };
    let write = |place: *mut GroupBody<T, F, M>| {
        // SAFETY: `allocate` passes memory that is valid for writes.
        unsafe { place.write(body) }
    };
    // SAFETY: `write` writes the whole body.
    let (thread, ready, _) = unsafe { body::allocate(attributes, write) }?;
    Some((thread, ready))
}

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
            id: sched::next_id(),
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
        park_for(WaitReason::new(Kind::Scope, scope.data.id));
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
        let (thread, ready) = allocate_member(attributes, closure, Arc::clone(&self.data))?;
        thread.set_scope(self.data.id);
        self.data.enter();
        Some((thread, ready))
    }

    /// Makes the handle of a thread of this scope.
    pub(super) fn handle_of<T>(&'scope self, thread: ThreadRef) -> ScopedJoinHandle<'scope, T> {
        ScopedJoinHandle {
            handle: JoinHandle::new(thread),
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
    handle: JoinHandle<T>,
    scope: &'scope ScopeData,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the thread to end and returns its result.
    ///
    /// # Errors
    /// The panic's payload, if the thread panicked.
    pub fn join(self) -> super::Result<T> {
        let result = self.handle.join();
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
        self.join_until(Deadline::after(timeout), Interruptible::Never)
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
    pub fn join_interruptible(self) -> Result<super::Result<T>, Self> {
        self.join_until(Deadline::NEVER, Interruptible::Always)
    }

    fn join_until(
        self,
        deadline: Deadline,
        interruptible: Interruptible,
    ) -> Result<super::Result<T>, Self> {
        match self.handle.has_ended_by(deadline, interruptible) {
            true => Ok(self.join()),
            false => Err(self),
        }
    }

    /// Returns the thread.
    pub fn thread(&self) -> &Thread {
        self.handle.thread()
    }

    /// Returns whether the thread has ended: [`join`](Self::join) would not block.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScopedJoinHandle")
            .field(self.thread())
            .finish()
    }
}
