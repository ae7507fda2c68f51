//! The queue of a pool of platform threads, and the number of threads in the pool.
//!
//! ```text
//!   submit                              a pool thread with nothing to do
//!   1. lock: put the job; is an idle    a. read `arrivals`
//!      thread wanted? unlock            b. lock: take a job, or count as idle; unlock
//!   2. arrivals += 1                    c. sleep while `arrivals` is what it was at a
//!   3. if so: wake a sleeper            d. lock: do not count as idle; unlock; back to a
//! ```
//!
//! The lock orders 1 and b. If 1 comes first, the thread takes the job. If b comes first, 1 sees
//! that the thread is idle; then either 2 comes before the kernel compares at c, or 3 finds a
//! sleeper. A thread counts as idle until d, so 3 may wake a thread that is awake already; that
//! thread looks at the queue again before it sleeps.
//!
//! Most jobs take microseconds and need a CPU for all of that time: more threads would not end them
//! sooner. So if `eager` threads are busy, the last idle thread takes nothing yet: it becomes the
//! *lookout*. There is at most one; it looks at the queue now and then, until the queue is empty or
//! the busy threads are blocked in the kernel. Then it takes a job, and a new thread becomes the
//! lookout. A thread that has finished a job takes the next one in any case.
//!
//! So while jobs wait, there is a lookout, or a thread on its way that will be, or the pool has as
//! many threads as it may have, all of them busy.
//!
//! `crates/pirn-model` checks this file: `jobs_model.rs`.

use crate::lock::{Guard, Lock};
use crate::primitives::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use crate::sys;
use crate::time::Deadline;
use core::mem;
use core::ptr::{self, NonNull};

/// How long the lookout waits before its first look, and between looks while threads are blocked.
const SHORTEST_NAP_NS: u64 = 100_000;
/// How long the lookout waits between looks while the busy threads run.
const LONGEST_NAP_NS: u64 = 800_000;
/// The number of looks in a row that find the thread with the newest job blocked, after which the
/// lookout takes a job. One look might have seen a short wait for a lock.
const ENOUGH_EVIDENCE: u32 = 3;
/// The number of looks in a row during which no thread took a job, after which the lookout takes
/// one although the thread with the newest job runs, or waits for a CPU: some 100 ms.
const LONGEST_RUN: u32 = 128;

/// A call that waits for a pool thread: the head of what its caller has on the stack.
pub(crate) struct Job {
    run: unsafe fn(NonNull<Job>),
    /// The next in the queue, whose lock guards it.
    next: *mut Job,
}

impl Job {
    /// Returns the job to call `run` once with its address.
    pub(crate) const fn new(run: unsafe fn(NonNull<Job>)) -> Job {
        Job {
            run,
            next: ptr::null_mut(),
        }
    }

    /// Runs the job.
    ///
    /// # Safety
    /// The job is valid, and no other thread runs it. It may be gone when this returns.
    pub(crate) unsafe fn run(job: NonNull<Job>) {
        // SAFETY: the caller's contract.
        unsafe { ((*job.as_ptr()).run)(job) };
    }
}

/// See the module's documentation.
pub struct Jobs {
    queue: Lock<JobQueue>,
    /// The number of jobs ever put in. Idle pool threads sleep on it.
    arrivals: AtomicU32,
    /// The largest number of pool threads.
    limit: usize,
    /// The number of busy threads up to which no idle thread is kept as the lookout.
    eager: usize,
    /// The number of platform threads that make a single call, besides the pool's.
    pub(crate) dedicated: AtomicUsize,
}

/// A pool thread.
pub(crate) struct Worker {
    /// The kernel's id of the thread.
    id: u32,
    /// The thread still counts as starting.
    starting: bool,
    /// The thread has taken a job and not come back.
    busy: bool,
}

/// A job that a pool thread has taken.
pub(crate) struct Taken {
    pub(crate) job: NonNull<Job>,
    /// The taker must start another pool thread before it runs the job, as after
    /// [`submit`](Jobs::submit).
    pub(crate) hire: bool,
}

struct JobQueue {
    head: *mut Job,
    tail: *mut Job,
    /// Jobs in the queue.
    waiting: usize,
    /// Pool threads that wait for a job.
    idle: usize,
    threads: usize,
    /// Pool threads being made, until they look at the queue for the first time. Only they
    /// themselves can tell: if a thread that has taken a job counted as starting, it would be
    /// counted on as the lookout.
    starting: usize,
    /// The ids of the pool threads that run a job; the one with the newest job is the last.
    busy: Vec<u32>,
    /// There is a lookout.
    watched: bool,
    /// The number of jobs ever taken by pool threads.
    taken: u32,
}

/// How busy a pool is.
pub struct Load {
    /// Calls that wait for a thread.
    pub waiting: usize,
    /// Threads that make a call, and the kernel's ids of some of them.
    pub busy: usize,
    pub some: [u32; Load::SOME],
    /// The most threads there can be.
    pub limit: usize,
    /// The number of calls that have ever been taken by a thread; it wraps.
    pub taken: u32,
}

impl Load {
    /// The most ids that are told.
    const SOME: usize = 64;
}

/// The duties of a thread that has changed the queue, once it has unlocked it.
struct Wanted {
    /// Wake an idle thread.
    wake: bool,
    /// Start a thread.
    hire: bool,
}

// SAFETY: jobs are followed under the lock, and only the thread that took a job runs it.
unsafe impl Send for JobQueue {}

impl Jobs {
    /// Returns an empty queue without threads. Up to `eager` of them are started at once.
    pub(crate) fn new(limit: usize, eager: usize) -> Jobs {
        Jobs {
            queue: Lock::new(JobQueue {
                head: ptr::null_mut(),
                tail: ptr::null_mut(),
                waiting: 0,
                idle: 0,
                threads: 0,
                starting: 0,
                busy: Vec::new(),
                watched: false,
                taken: 0,
            }),
            arrivals: AtomicU32::new(0),
            limit,
            eager,
            dedicated: AtomicUsize::new(0),
        }
    }

    /// Puts a job in the queue. Returns whether the caller must start another pool thread, which
    /// calls [`next`](Self::next), or report with [`not_started`](Self::not_started).
    ///
    /// # Safety
    /// The job is valid, and stays in place until it has been taken off and run.
    #[must_use = "`true` is the duty to start a pool thread"]
    pub(crate) unsafe fn submit(&self, job: NonNull<Job>) -> bool {
        let mut queue = self.queue.lock();
        // SAFETY: the caller's contract.
        unsafe { queue.put(job) };
        let wanted = self.wanted(&mut queue);
        drop(queue);
        self.wake(&wanted);
        wanted.hire
    }

    /// Returns what is to be done so that the jobs in the queue are taken, or watched.
    fn wanted(&self, queue: &mut JobQueue) -> Wanted {
        let eager = self.eager.saturating_sub(queue.busy.len());
        let at_once = queue.waiting.min(eager.max(queue.idle.saturating_sub(1)));
        let lookout = queue.waiting > at_once && !queue.watched;
        let threads = at_once + usize::from(lookout);
        let hire =
            queue.idle + queue.starting < threads && queue.threads + queue.starting < self.limit;
        queue.starting += usize::from(hire);
        Wanted {
            wake: threads > 0 && queue.idle > 0,
            hire,
        }
    }

    fn wake(&self, wanted: &Wanted) {
        // Relaxed: the queue is under the lock; the futex call compares the count.
        self.arrivals.fetch_add(1, Relaxed);
        if wanted.wake {
            sys::futex_wake(&self.arrivals, 1);
        }
    }

    /// Returns the number of threads, with the threads of single calls.
    pub fn threads(&self) -> usize {
        let queue = self.queue.lock();
        queue.threads + queue.starting + self.dedicated.load(Relaxed) // Relaxed: statistics only.
    }

    /// Returns how busy the pool is.
    pub fn load(&self) -> Load {
        let queue = self.queue.lock();
        let mut some = [0; Load::SOME];
        let busy = queue.busy.len();
        for (place, &id) in some.iter_mut().zip(&queue.busy) {
            *place = id;
        }
        Load {
            waiting: queue.waiting,
            busy,
            some,
            limit: self.limit,
            taken: queue.taken,
        }
    }

    /// Notes that a pool thread could not be started. Without any pool thread the jobs would stay:
    /// then this returns them one by one, and the caller must run them.
    pub(crate) fn not_started(&self, first: bool) -> Option<NonNull<Job>> {
        let mut queue = self.queue.lock();
        queue.starting -= usize::from(first);
        if queue.threads + queue.starting > 0 {
            return None;
        }
        queue.take()
    }

    /// Waits for a job on a pool thread. Returns `None` after `keep_alive` nanoseconds: the thread
    /// must end. `is_blocked` tells whether a pool thread waits for something in the kernel.
    pub(crate) fn next(
        &self,
        worker: &mut Worker,
        keep_alive: u64,
        is_blocked: impl Fn(u32) -> bool,
    ) -> Option<Taken> {
        let deadline = Deadline::after_nanos(keep_alive);
        loop {
            let seen = self.arrivals.load(Relaxed); // Relaxed: compared again by the kernel.
            {
                let mut queue = self.queue.lock();
                if mem::take(&mut worker.starting) {
                    queue.starting -= 1;
                    queue.threads += 1;
                }
                let returns = mem::take(&mut worker.busy);
                if returns {
                    queue.leave(worker.id);
                }
                if queue.waiting > 0 {
                    if returns || queue.busy.len() < self.eager || queue.idle > 0 {
                        return Some(self.take(queue, worker));
                    }
                    if !mem::replace(&mut queue.watched, true) {
                        drop(queue);
                        match self.watch(worker, &is_blocked) {
                            Some(taken) => return Some(taken),
                            None => continue,
                        }
                    }
                }
                // If jobs are left, the lookout has them in view.
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

    /// Waits as the lookout until the queue is empty (`None`), or another thread should run jobs.
    fn watch(&self, worker: &mut Worker, is_blocked: impl Fn(u32) -> bool) -> Option<Taken> {
        let mut seen = self.queue.lock().taken;
        let (mut nap, mut evidence, mut looks) = (SHORTEST_NAP_NS, 0, 0);
        loop {
            sys::nap(nap);
            let (taken, newest) = {
                let mut queue = self.queue.lock();
                if queue.waiting == 0 {
                    queue.watched = false;
                    return None;
                }
                (queue.taken, queue.busy.last().copied())
            };
            let stands = taken == seen;
            looks = if stands { looks + 1 } else { 0 };
            if newest.is_some_and(&is_blocked) {
                nap = SHORTEST_NAP_NS;
                evidence += 1;
            } else {
                nap = (2 * nap).min(LONGEST_NAP_NS);
                evidence = 0;
            }
            seen = taken;
            if evidence < ENOUGH_EVIDENCE && looks < LONGEST_RUN {
                continue;
            }
            let mut queue = self.queue.lock();
            queue.watched = false;
            return (queue.waiting > 0).then(|| self.take(queue, worker));
        }
    }

    /// Takes a job off the queue, which is not empty, and sees to it that the rest is watched.
    fn take(&self, mut queue: Guard<'_, JobQueue>, worker: &mut Worker) -> Taken {
        let Some(job) = queue.take() else {
            unreachable!("the caller has seen a job under the same lock")
        };
        queue.busy.push(worker.id);
        queue.taken = queue.taken.wrapping_add(1);
        worker.busy = true;
        let wanted = self.wanted(&mut queue);
        drop(queue);
        if wanted.wake {
            self.wake(&wanted);
        }
        Taken {
            job,
            hire: wanted.hire,
        }
    }
}

impl Worker {
    /// Returns the record of a pool thread that has just been made because it was wanted.
    pub(crate) fn new(id: u32) -> Worker {
        Worker {
            id,
            starting: true,
            busy: false,
        }
    }
}

impl JobQueue {
    /// Adds a job at the end.
    ///
    /// # Safety
    /// The job is valid, and stays in place until it has been taken off and run.
    unsafe fn put(&mut self, job: NonNull<Job>) {
        // SAFETY: jobs in the queue stay in place until they are run: the contract of `put`.
        unsafe {
            (*job.as_ptr()).next = ptr::null_mut();
            match NonNull::new(self.tail) {
                Some(tail) => (*tail.as_ptr()).next = job.as_ptr(),
                None => self.head = job.as_ptr(),
            }
        }
        self.tail = job.as_ptr();
        self.waiting += 1;
    }

    /// Notes that a thread has run its job.
    fn leave(&mut self, id: u32) {
        // Short jobs are the newest ones.
        if let Some(place) = self.busy.iter().rposition(|&busy| busy == id) {
            self.busy.remove(place);
        }
    }

    fn take(&mut self) -> Option<NonNull<Job>> {
        let job = NonNull::new(self.head)?;
        // SAFETY: as in `put`.
        self.head = unsafe { job.as_ref() }.next;
        if self.head.is_null() {
            self.tail = ptr::null_mut();
        }
        self.waiting -= 1;
        Some(job)
    }
}
