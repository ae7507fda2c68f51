//! Tasks of async code that wait for a descriptor.
//!
//! A task tries, and when that would block it leaves its waker among the descriptor's waiters, by
//! the protocol of [`readiness`](super::fds::readiness). It returns to its executor in place of
//! parking, so its place in the list cannot be on a stack: it is on the heap, made at the first
//! wait, and belongs to a [`TaskPlace`].
//!
//! ```text
//!   the task                          an event, or a close of the descriptor
//!     1. read the count
//!     2. try: EAGAIN
//!     3. count unchanged: put the       a. count += 1, take the place out of the list and the
//!        waker into the place, and         waker out of the place
//!        the place into the list        b. wake
//!     4. return `Pending`
//! ```
//!
//! 3 and a are under the lock of the list, so after a only the task's side knows the place. A
//! [`TaskPlace`] that is dropped leaves its list under the same lock first.
//!
//! `crates/pirn-model` checks this: `task_model.rs`.

use crate::blocking::fds::readiness::{FdWaiter, Interest};
use crate::blocking::fds::{self, Entry, other_table};
use crate::blocking::wait::Outcome;
use crate::panic;
use crate::sched;
use crate::sched::runtime::{self, Runtime};
#[cfg(feature = "async-io")]
use crate::sys::SysResult;
use crate::sys::{self, Errno};
use core::cell::{Cell, OnceCell};
use core::ptr::{self, NonNull};
use core::task::{Poll, Waker};
use std::io;

/// Wakes a task. Not to be called under a lock.
///
/// The waker is foreign code, and the caller may be in the middle of runtime code. So it runs as
/// platform code, as a scheduler of the program does: if it blocks, it blocks the carrier.
#[cold]
pub(super) fn wake(waker: Waker) {
    let call = move || {
        if panic::catch(|| waker.wake()).is_none() {
            sys::fatal(&[
                "a waker panicked, and with it an event of a descriptor that a task awaits is lost",
            ]);
        }
    };
    // SAFETY: `call` does not unwind.
    unsafe { sched::on_carrier(call) };
}

/// Where one task at a time waits for one kind of event of a descriptor. It remembers the last
/// waker, and forgets it when it is dropped.
pub struct TaskPlace {
    interest: Interest,
    /// `None` before the first wait.
    waiter: Option<NonNull<TaskWaiter>>,
    /// The list that it was last put into.
    list: Option<List>,
}

/// The list of a descriptor's waiters, in the table of a runtime.
#[derive(Clone, Copy)]
struct List {
    entry: &'static Entry,
    /// After a fork the entry belongs to a runtime that is gone: then no thread touches it.
    runtime: &'static Runtime,
}

impl PartialEq for List {
    fn eq(&self, other: &List) -> bool {
        ptr::eq(self.entry, other.entry) && ptr::eq(self.runtime, other.runtime)
    }
}

/// The part of a place that is on the heap. The lock of the list guards it while it is in the list.
struct TaskWaiter {
    waker: Cell<Option<Waker>>,
    /// Refers to `waker`, and so is made when that is in its place.
    waiter: OnceCell<FdWaiter>,
}

// SAFETY: the waiter's links and the waker are accessed by the owner while it is in no list, and
// under the lock of the list otherwise; wakers are Send.
unsafe impl Send for TaskPlace {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl Sync for TaskPlace {}

impl TaskPlace {
    /// Returns a place in which no task waits.
    pub const fn new(interest: Interest) -> TaskPlace {
        TaskPlace {
            interest,
            waiter: None,
            list: None,
        }
    }

    /// Polls an operation on a descriptor. While `attempt` returns `None`, which means that it
    /// would block, waits for an event: then the result is `Pending`, and the event, or the close
    /// of the descriptor, wakes `waker`. Only the waker of the last call is woken.
    ///
    /// # Errors
    /// If the descriptor was closed during this call, or its events cannot be waited for.
    pub fn poll<R>(
        &mut self,
        fd: i32,
        waker: &Waker,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_since(fd, waker, |_, _| attempt())
    }

    /// Does what [`poll`](Self::poll) does. Each attempt gets the generation and the count before
    /// it.
    fn poll_since<R>(
        &mut self,
        fd: i32,
        waker: &Waker,
        mut attempt: impl FnMut(&Entry, (u32, u32)) -> Option<R>,
    ) -> Poll<io::Result<R>> {
        let entry = entry_of(fd)?;
        loop {
            let since = entry.since(self.interest);
            if let Some(result) = attempt(entry, since) {
                return Poll::Ready(Ok(result));
            }
            let runtime = runtime::ensure_started()?;
            entry.register(fd).map_err(not_reported)?;
            match self.put(List { entry, runtime }, since, waker) {
                Ok(()) => return Poll::Pending,
                Err(Outcome::Closed) => return Poll::Ready(Err(error(fds::CLOSED))),
                Err(_) => {}
            }
        }
    }

    /// Puts the waker where an event after `since` finds it. Returns the event that has come
    /// already instead.
    fn put(&mut self, list: List, since: (u32, u32), waker: &Waker) -> Result<(), Outcome> {
        let mut waker = Some(waker.clone());
        if self.list != Some(list) {
            self.leave(); // The owner has exchanged the descriptor.
        }
        let waiter = *self.waiter.get_or_insert_with(TaskWaiter::allocate);
        // SAFETY: ours until `free`.
        let waiter = unsafe { waiter.as_ref() }.waiter(self.interest);
        self.list = Some(list);
        let joined = || list.entry.note_waiter();
        let readiness = &list.entry.readiness;
        // SAFETY: it is in this list or in none. It stays on the heap until `leave` has called
        // `stop_observing`, or for good.
        unsafe { readiness.await_event(self.interest, since, waiter, &mut waker, joined) }
        // The previous waker is dropped here, outside of the lock.
    }

    /// Takes the place out of its list. The task that has put a waker into it is not woken any
    /// more.
    fn leave(&mut self) {
        let Some(list) = self.list.take() else {
            return;
        };
        let Some(task) = self.waiter else {
            return;
        };
        if !runtime::get().is_some_and(|now| ptr::eq(now, list.runtime)) {
            // The child of a fork. A thread of the parent may have held the lock: leave it be.
            self.waiter = None;
            return;
        }
        // SAFETY: ours until `free`.
        let task = unsafe { task.as_ref() };
        // SAFETY: it is in this list or in none.
        unsafe {
            list.entry
                .readiness
                .stop_observing(task.waiter(self.interest))
        };
        drop(task.waker.take()); // Foreign code, outside of the lock.
    }
}

impl Drop for TaskPlace {
    fn drop(&mut self) {
        self.leave();
        if let Some(task) = self.waiter {
            // SAFETY: from `allocate`; in no list, so no other reference to it exists.
            drop(unsafe { Box::from_raw(task.as_ptr()) });
        }
    }
}

impl TaskWaiter {
    fn allocate() -> NonNull<TaskWaiter> {
        NonNull::from(Box::leak(Box::new(TaskWaiter {
            waker: Cell::new(None),
            waiter: OnceCell::new(),
        })))
    }

    fn waiter(&self, interest: Interest) -> &FdWaiter {
        self.waiter
            .get_or_init(|| FdWaiter::task(&self.waker, interest))
    }
}

/// Returns the entry of a descriptor that a task may wait for.
fn entry_of(fd: i32) -> io::Result<&'static Entry> {
    if other_table::is_here() {
        return Err(refused(
            "pirn: this platform thread has a table of descriptors of its own, so a task cannot \
             wait for one on it: poll the task on another thread",
        ));
    }
    fds::entry(fd).ok_or_else(|| {
        refused("pirn: a task can wait for descriptors below 1,048,576 only, and not in a handler")
    })
}

/// Makes sure that the poller reports a descriptor's events. Returns without an error for one that
/// has none because it is always ready (a regular file).
pub fn prepare(fd: i32) -> io::Result<()> {
    let entry = entry_of(fd)?;
    match entry.register(fd) {
        Ok(_) | Err(Errno(libc::EPERM)) => Ok(()),
        Err(e) => Err(error(e)),
    }
}

/// Returns the error of a wait for a descriptor that cannot be registered.
fn not_reported(errno: Errno) -> io::Error {
    match errno {
        Errno(libc::EPERM) => refused(
            "pirn: the operation would block, but the kernel reports no events of this descriptor, \
             which is always ready (a regular file is): let the operation wait, on this thread",
        ),
        errno => error(errno),
    }
}

fn refused(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, text)
}

fn error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.0)
}

#[cfg(feature = "async-io")]
/// Reads and writes.
impl TaskPlace {
    /// Polls a read of `wanted` bytes, as [`poll`](Self::poll) does. After a read of a TCP stream
    /// that gave fewer, waits for an event before the next attempt.
    pub fn poll_read(
        &mut self,
        fd: i32,
        waker: &Waker,
        wanted: usize,
        mut attempt: impl FnMut() -> SysResult,
    ) -> Poll<io::Result<usize>> {
        let attempt = |entry: &Entry, since| {
            if entry.readiness.is_emptied(since) && entry.is_stream() {
                return None;
            }
            let result = unless_it_would_block(attempt());
            if let Some(Ok(done @ 1..)) = result
                && done < wanted
                && entry.is_stream()
            {
                entry.readiness.note_emptied(since);
            }
            result
        };
        self.poll_since(fd, waker, attempt).map(flatten)
    }

    /// Polls a write, as [`poll`](Self::poll) does.
    pub fn poll_write(
        &mut self,
        fd: i32,
        waker: &Waker,
        mut attempt: impl FnMut() -> SysResult,
    ) -> Poll<io::Result<usize>> {
        self.poll(fd, waker, || unless_it_would_block(attempt()))
            .map(flatten)
    }
}

#[cfg(feature = "async-io")]
fn unless_it_would_block(result: SysResult) -> Option<SysResult> {
    (result != Err(Errno(libc::EAGAIN))).then_some(result)
}

#[cfg(feature = "async-io")]
fn flatten(result: io::Result<SysResult>) -> io::Result<usize> {
    result?.map_err(error)
}
