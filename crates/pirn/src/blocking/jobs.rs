//! The queue of a pool of platform threads, and the number of threads in the pool.
//!
//! ```text
//!   submit                              a pool thread with nothing to do
//!   1. lock: put the job; is anybody    a. read `arrivals`
//!      idle? unlock                     b. lock: take a job, or count as idle; unlock
//!   2. arrivals += 1                    c. sleep while `arrivals` is what it was at a
//!   3. somebody idle: wake a sleeper    d. lock: do not count as idle; unlock; back to a
//! ```
//!
//! The lock orders 1 and b. If 1 comes first, the thread takes the job. If b comes first, 1 sees
//! that the thread is idle; then either 2 comes before the kernel compares at c, or 3 finds a
//! sleeper. A thread counts as idle until d, so 3 may wake a thread that is awake already; that
//! thread looks at the queue again before it sleeps.
//!
//! `crates/pirn-model` checks this file: `jobs_model.rs`.

use crate::lock::Lock;
use crate::primitives::{AtomicU32, Ordering::Relaxed};
use crate::sys;
use crate::time::Deadline;
use core::ptr::{self, NonNull};

/// A job, linked through the field that `link` returns. It stays in place while it is in a queue.
///
/// # Safety
/// `link` returns the same field each time.
pub(crate) unsafe trait Job {
    /// Returns the link of a job that is in no queue, or in a queue whose lock is held.
    ///
    /// # Safety
    /// `job` is valid.
    unsafe fn link(job: NonNull<Self>) -> *mut *mut Self;
}

/// See the module's documentation.
pub(crate) struct Jobs<J> {
    queue: Lock<JobQueue<J>>,
    /// The number of jobs ever put in. Idle pool threads sleep on it.
    arrivals: AtomicU32,
    /// The largest number of pool threads.
    limit: usize,
}

struct JobQueue<J> {
    head: *mut J,
    tail: *mut J,
    /// Jobs in the queue.
    waiting: usize,
    /// Pool threads that wait for a job.
    idle: usize,
    threads: usize,
    /// Pool threads being made.
    starting: usize,
}

// SAFETY: jobs are followed under the lock, and only the thread that took a job runs it.
unsafe impl<J> Send for JobQueue<J> {}

impl<J: Job> Jobs<J> {
    /// Returns an empty queue without threads.
    pub(crate) fn new(limit: usize) -> Jobs<J> {
        Jobs {
            queue: Lock::new(JobQueue {
                head: ptr::null_mut(),
                tail: ptr::null_mut(),
                waiting: 0,
                idle: 0,
                threads: 0,
                starting: 0,
            }),
            arrivals: AtomicU32::new(0),
            limit,
        }
    }

    /// Puts a job in the queue. Returns whether the caller must start another pool thread, and then
    /// report with [`started`](Self::started) or [`not_started`](Self::not_started).
    ///
    /// # Safety
    /// The job is valid, and stays in place until it has been taken off and run.
    #[must_use = "`true` is the duty to start a pool thread"]
    pub(crate) unsafe fn submit(&self, job: NonNull<J>) -> bool {
        let mut queue = self.queue.lock();
        // SAFETY: the caller's contract.
        unsafe { queue.put(job) };
        let wake = queue.idle > 0;
        let grow = queue.idle < queue.waiting && queue.threads + queue.starting < self.limit;
        queue.starting += usize::from(grow);
        drop(queue);
        // Relaxed: the queue is under the lock; the futex call compares the count.
        self.arrivals.fetch_add(1, Relaxed);
        if wake {
            sys::futex_wake(&self.arrivals, 1);
        }
        grow
    }

    /// Notes that a pool thread has been started.
    pub(crate) fn started(&self) {
        let mut queue = self.queue.lock();
        queue.starting -= 1;
        queue.threads += 1;
    }

    /// Notes that a pool thread could not be started. Without any pool thread nobody would take the
    /// jobs: then this returns them one by one, and the caller must run them.
    pub(crate) fn not_started(&self, first: bool) -> Option<NonNull<J>> {
        let mut queue = self.queue.lock();
        queue.starting -= usize::from(first);
        if queue.threads + queue.starting > 0 {
            return None;
        }
        queue.take()
    }

    /// Waits for a job on a pool thread. Returns `None` after `keep_alive` nanoseconds: the thread
    /// must end.
    pub(crate) fn next(&self, keep_alive: u64) -> Option<NonNull<J>> {
        let deadline = Deadline::after_nanos(keep_alive);
        loop {
            let seen = self.arrivals.load(Relaxed); // Relaxed: compared again by the kernel.
            {
                let mut queue = self.queue.lock();
                if let Some(job) = queue.take() {
                    return Some(job);
                }
                if deadline.has_passed() {
                    queue.threads -= 1;
                    return None;
                }
                queue.idle += 1;
            }
            let _ = sys::futex_wait(&self.arrivals, seen, deadline);
            self.queue.lock().idle -= 1;
        }
    }
}

impl<J: Job> JobQueue<J> {
    /// Adds a job at the end.
    ///
    /// # Safety
    /// The job is valid, and stays in place until it has been taken off and run.
    unsafe fn put(&mut self, job: NonNull<J>) {
        // SAFETY: jobs in the queue stay in place until they are run: the contract of `put`.
        unsafe {
            *J::link(job) = ptr::null_mut();
            match NonNull::new(self.tail) {
                Some(tail) => *J::link(tail) = job.as_ptr(),
                None => self.head = job.as_ptr(),
            }
        }
        self.tail = job.as_ptr();
        self.waiting += 1;
    }

    fn take(&mut self) -> Option<NonNull<J>> {
        let job = NonNull::new(self.head)?;
        // SAFETY: as in `put`.
        self.head = unsafe { *J::link(job) };
        if self.head.is_null() {
            self.tail = ptr::null_mut();
        }
        self.waiting -= 1;
        Some(job)
    }
}
