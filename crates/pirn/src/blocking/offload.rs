//! Calls that only the kernel can finish: on platform threads, while the virtual thread parks.
//!
//! *Bounded* calls (file I/O, name lookup) end by themselves, whatever other threads do. They share
//! a pool of platform threads, made when needed, kept for a while, and never more than
//! `max_blocking_threads`: more calls than that wait in line. Since each ends by itself, the line
//! always moves.
//!
//! *Unbounded* calls wait for somebody's action (a lock held by another process, the other end of a
//! FIFO). If they shared the pool, they could fill it, and the action they wait for might need it:
//! a deadlock. Each gets a thread of its own ([`dedicated`]).

use super::wait::{Outcome, Wait};
use crate::lock::Lock;
use crate::sys::{self, Errno, SysResult};
use crate::time::Deadline;
use crate::vthread;
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// How long a pool thread waits for work before it ends.
const KEEP_ALIVE_NS: u64 = 10_000_000_000;
const STACK: usize = 256 << 10;

/// A call waiting for a pool thread. On the stack of the thread that waits for it.
struct Job {
    run: unsafe fn(*mut Job),
    wait: Wait,
    next: *mut Job,
}

struct Queue {
    head: *mut Job,
    tail: *mut Job,
    /// Pool threads that wait for a job.
    idle: usize,
    threads: usize,
    /// Pool threads being made.
    starting: usize,
    /// Jobs in the queue.
    waiting: usize,
}

// SAFETY: jobs are followed under the lock, and run by whoever took them off the queue.
unsafe impl Send for Queue {}

static QUEUE: Lock<Queue> = Lock::new(Queue {
    head: ptr::null_mut(),
    tail: ptr::null_mut(),
    idle: 0,
    threads: 0,
    starting: 0,
    waiting: 0,
});
/// Counts jobs put in: what idle pool threads sleep on.
static ARRIVALS: AtomicU32 = AtomicU32::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(256);

/// Sets the largest number of pool threads. Once, at start.
pub(crate) fn start(limit: usize) {
    LIMIT.store(limit, Ordering::Relaxed); // Relaxed: published by the end of the start.
}

#[repr(C)]
struct Call<F, R> {
    job: Job,
    function: UnsafeCell<Option<F>>,
    result: UnsafeCell<Option<R>>,
    /// `errno` as the call left it, for functions that report through it.
    errno: UnsafeCell<i32>,
}

impl<F: FnOnce() -> R, R> Call<F, R> {
    fn new(function: F) -> Call<F, R> {
        Call {
            job: Job {
                run: Self::run,
                wait: Wait::new(),
                next: ptr::null_mut(),
            },
            function: UnsafeCell::new(Some(function)),
            result: UnsafeCell::new(None),
            errno: UnsafeCell::new(0),
        }
    }

    unsafe fn run(job: *mut Job) {
        let call = job.cast::<Self>();
        // SAFETY: the waiting thread keeps the call in place until the claim below.
        unsafe {
            if let Some(function) = (*(*call).function.get()).take() {
                sys::set_errno(Errno(0));
                *(*call).result.get() = Some(function());
                *(*call).errno.get() = sys::errno();
            }
            if let Some(wakeup) = (*job).wait.claim(Outcome::Ready) {
                wakeup.perform();
            }
        }
    }

    fn finish(self) -> R {
        let errno = self.errno.into_inner();
        if errno != 0 {
            sys::set_errno(Errno(errno));
        }
        match self.result.into_inner() {
            Some(result) => result,
            None => sys::fatal(&["an offloaded call gave no result"]),
        }
    }
}

/// Runs a call that ends by itself on a pool thread; on a platform thread, right here.
pub(crate) fn bounded<R>(function: impl FnOnce() -> R) -> R {
    if vthread::current().is_none() {
        return function();
    }
    let mut call = Call::new(function);
    submit(&raw mut call.job);
    call.job.wait.block();
    call.finish()
}

fn run_here<F: FnOnce() -> R, R>(call: Call<F, R>) -> R {
    match call.function.into_inner() {
        Some(function) => function(),
        None => sys::fatal(&["an offloaded call was run twice"]),
    }
}

/// Runs a call that may wait for others on a platform thread of its own; on a platform thread,
/// right here.
pub(crate) fn dedicated(function: impl FnOnce() -> SysResult) -> SysResult {
    if vthread::current().is_none() {
        return function();
    }
    let mut call = Call::new(function);
    let job = Handover(&raw mut call.job);
    let spawned = std::thread::Builder::new()
        .name("pirn-blocking".into())
        .stack_size(STACK)
        .spawn(move || {
            let job = job;
            // SAFETY: the waiting thread keeps the job in place until it is done.
            unsafe { ((*job.0).run)(job.0) }
        });
    match spawned {
        Ok(_) => {
            call.job.wait.block();
            call.finish()
        }
        Err(_) => run_here(call),
    }
}

struct Handover(*mut Job);
// SAFETY: the job is the receiver's until it is done.
unsafe impl Send for Handover {}

/// Puts a job in the queue and sees to it that a thread will take it.
fn submit(job: *mut Job) {
    let mut queue = QUEUE.lock();
    queue.put(job);
    let limit = LIMIT.load(Ordering::Relaxed); // Relaxed: see `start`.
    let wake = queue.idle > 0;
    let grow = queue.idle < queue.waiting && queue.threads + queue.starting < limit;
    queue.starting += usize::from(grow);
    drop(queue);
    // Relaxed: the queue is under the lock; the futex call compares the count.
    ARRIVALS.fetch_add(1, Ordering::Relaxed);
    if wake {
        sys::futex_wake(ARRIVALS.as_ptr(), 1);
    }
    if grow {
        start_worker();
    }
}

fn start_worker() {
    let spawned = std::thread::Builder::new()
        .name("pirn-blocking".into())
        .stack_size(STACK)
        .spawn(worker);
    let mut queue = QUEUE.lock();
    queue.starting -= 1;
    if spawned.is_ok() {
        queue.threads += 1;
        return;
    }
    // With no pool thread at all, nobody would come for the jobs, ours among them: do them here,
    // and hold the carrier.
    while queue.threads + queue.starting == 0
        && let Some(job) = queue.take()
    {
        drop(queue);
        // SAFETY: off the queue, so ours to run, once.
        unsafe { ((*job).run)(job) };
        queue = QUEUE.lock();
    }
}

impl Queue {
    fn put(&mut self, job: *mut Job) {
        // SAFETY: jobs in the queue stay in place until they are run.
        unsafe {
            match self.tail.as_mut() {
                Some(tail) => tail.next = job,
                None => self.head = job,
            }
        }
        self.tail = job;
        self.waiting += 1;
    }

    fn take(&mut self) -> Option<*mut Job> {
        let job = self.head;
        // SAFETY: as in `put`.
        self.head = unsafe { job.as_ref() }?.next;
        if self.head.is_null() {
            self.tail = ptr::null_mut();
        }
        self.waiting -= 1;
        Some(job)
    }
}

/// A pool thread.
fn worker() {
    while let Some(job) = next_job() {
        // SAFETY: off the queue, so ours to run, once.
        unsafe { ((*job).run)(job) };
    }
}

fn next_job() -> Option<*mut Job> {
    let deadline = Deadline::after_nanos(KEEP_ALIVE_NS);
    loop {
        let seen = ARRIVALS.load(Ordering::Relaxed); // Relaxed: compared again by the kernel.
        {
            let mut queue = QUEUE.lock();
            if let Some(job) = queue.take() {
                return Some(job);
            }
            if deadline.has_passed() {
                queue.threads -= 1;
                return None;
            }
            queue.idle += 1;
        }
        let _ = sys::futex_wait(&ARRIVALS, seen, deadline);
        QUEUE.lock().idle -= 1;
    }
}
