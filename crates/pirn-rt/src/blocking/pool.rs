//! Calls that only the kernel can finish: on platform threads, while the virtual thread parks.
//!
//! *Bounded* calls (file I/O, name lookup) end by themselves, whatever other threads do. They share
//! a pool of at most `max_blocking_threads` platform threads, which are made when needed ([`Jobs`])
//! and kept for a while. Further calls wait in line. Since each call ends by itself, the line
//! always moves.
//!
//! *Unbounded* calls wait for another party's action (a child that ends, a futex that is shared
//! with another process). If they shared the pool, they could fill it, and the action they wait for
//! might need it: a deadlock. Each gets a thread of its own ([`dedicated`]).

use crate::blocking::wait::{Outcome, Wait};
use crate::environment;
use crate::reactor::jobs::{Job, Jobs, Worker};
use crate::recorder::kinds;
use crate::sanitizer::{self, valgrind};
use crate::sched::{Runtime, counters, os_thread, recorded, safepoint, simulation};
use crate::sys::{self, Errno, SysResult, call};
use crate::time::Deadline;
use crate::vthread::wait_reason::WaitReason;
use crate::vthread::{self, Current, signals, start_helper};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How long a pool thread waits for work before it ends.
const KEEP_ALIVE_NS: u64 = 10_000_000_000;
const STACK: usize = 256 << 10;

/// A call, on the stack of the thread that waits for it.
#[repr(C)]
struct Call<F, R> {
    job: Job,
    wait: Wait,
    function: UnsafeCell<Option<F>>,
    result: UnsafeCell<Option<R>>,
    /// `errno` as the call left it, for functions that report through it.
    errno: UnsafeCell<i32>,
}

impl<F: FnOnce() -> R, R> Call<F, R> {
    fn new(reason: WaitReason, function: F) -> Call<F, R> {
        Call {
            job: Job::new(Self::run),
            wait: Wait::new(reason),
            function: UnsafeCell::new(Some(function)),
            result: UnsafeCell::new(None),
            errno: UnsafeCell::new(0),
        }
    }

    unsafe fn run(job: NonNull<Job>) {
        let call = job.cast::<Self>().as_ptr();
        // SAFETY: the waiting thread keeps the call in place until the claim below.
        unsafe {
            if let Some(function) = (*(*call).function.get()).take() {
                sys::set_errno(Errno(0));
                let result = signals::on_behalf_of((*call).wait.waiter(), function);
                *(*call).result.get() = Some(result);
                *(*call).errno.get() = sys::errno();
            }
            if let Some(wakeup) = (*call).wait.claim(Outcome::Ready) {
                wakeup.perform();
            }
        }
    }

    fn finish(self, thread: Current) -> R {
        let Call {
            wait,
            result,
            errno,
            ..
        } = self;
        drop(wait);
        if thread.signals.any_pending() {
            raised(thread);
        }
        let errno = errno.into_inner();
        if errno != 0 {
            sys::set_errno(Errno(errno));
        }
        match result.into_inner() {
            Some(result) => result,
            None => sys::fatal(&["an offloaded call gave no result"]),
        }
    }
}

/// Delivers a signal that an offloaded call has raised for its caller.
#[cold]
fn raised(thread: Current) {
    if thread.signals.deliverable() != 0 {
        safepoint::note_own(thread);
        safepoint::run_if_requested();
    }
}

/// Runs a call that ends by itself on a pool thread; on a platform thread, and in a simulation,
/// which must not depend on when it ends, runs it in place. With a
/// sanitizer, runs it in place on any thread: the sanitizer's runtime makes such calls while it
/// holds locks that a pool thread needs to start (it opens files to describe an error). Dumps show
/// `reason`.
pub fn bounded<R>(reason: WaitReason, function: impl FnOnce() -> R) -> R {
    let thread = match vthread::parkable() {
        Some(thread) if !sanitizer::is_instrumented() && !simulation::is_running() => thread,
        _ => return function(),
    };
    counters::note(Runtime::of(&thread), |counters| &counters.offloaded);
    let mut call = Call::new(reason, function);
    // SAFETY: the call stays here until it has been run: then the wait ends.
    unsafe { submit(&Runtime::of(&thread).pool, NonNull::from(&mut call.job)) };
    recorded::event(kinds::OFFLOAD, 0);
    call.wait.block();
    recorded::event(kinds::OFFLOADED, 0);
    call.finish(thread)
}

fn run_here<F: FnOnce() -> R, R>(call: Call<F, R>) -> R {
    match call.function.into_inner() {
        Some(function) => function(),
        None => sys::fatal(&["an offloaded call was run twice"]),
    }
}

/// Runs a call that may wait for others on a platform thread of its own; on a platform thread, runs
/// it in place.
///
/// If the system refuses another thread, this waits up to a second for others to end, then reports
/// the refusal and lets the call block the carrier. Dumps show `reason`.
pub fn dedicated(reason: WaitReason, function: impl FnOnce() -> SysResult) -> SysResult {
    const LONGEST_PAUSE_NS: u64 = 500_000_000;
    let Some(thread) = vthread::parkable().filter(|_| !simulation::is_running()) else {
        return function();
    };
    counters::note(Runtime::of(&thread), |counters| &counters.offloaded_alone);
    let mut call = Call::new(reason, function);
    let mut pause = 1_000_000;
    let count = &Runtime::of(&thread).pool.dedicated;
    while let Err(error) = start_dedicated(&mut call.job, count) {
        if pause > LONGEST_PAUSE_NS {
            static SAID: AtomicBool = AtomicBool::new(false);
            let so = "calls that wait for others block their carriers";
            environment::notice_no_thread(&SAID, &error, so);
            return run_here(call);
        }
        Wait::new(reason.looking()).block_until(Deadline::after_nanos(pause));
        thread.wait_info.begin(reason);
        pause *= 2;
    }
    recorded::event(kinds::OFFLOAD, 0);
    call.wait.block();
    recorded::event(kinds::OFFLOADED, 0);
    call.finish(thread)
}

/// Starts a thread that runs the job, and is counted while it does.
fn start_dedicated(job: &mut Job, count: &'static AtomicUsize) -> std::io::Result<()> {
    let job = Handover(NonNull::from(job));
    let work = move || {
        let job = job;
        signals::block_others_but_raised();
        valgrind::note_platform_thread();
        count.fetch_add(1, Ordering::Relaxed); // Relaxed: statistics only.
        // SAFETY: the waiting thread keeps the job in place until it is done.
        unsafe { Job::run(job.0) }
        stay_for_children();
        count.fetch_sub(1, Ordering::Relaxed); // Relaxed: statistics only.
    };
    start_helper("pirn-blocking", STACK, work)
}

struct Handover(NonNull<Job>);
// SAFETY: the job is the receiver's until it is done.
unsafe impl Send for Handover {}

/// Puts a job in the queue and makes sure that a thread will take it.
///
/// # Safety
/// The job stays in place until it has been run.
unsafe fn submit(pool: &'static Jobs, job: NonNull<Job>) {
    // SAFETY: the caller's contract.
    if unsafe { pool.submit(job) } {
        start_worker(pool);
    }
}

fn start_worker(pool: &'static Jobs) {
    if start_helper("pirn-blocking", STACK, move || work(pool)).is_ok() {
        return;
    }
    // Without any pool thread, run the queued jobs here, our own among them, and block the carrier.
    let mut next = pool.not_started(true);
    while let Some(job) = next {
        // SAFETY: off the queue, so ours to run, once.
        unsafe { Job::run(job) };
        next = pool.not_started(false);
    }
}

/// Runs jobs on a pool thread.
fn work(pool: &'static Jobs) {
    signals::block_others_but_raised();
    valgrind::note_platform_thread();
    let mut worker = Worker::new(os_thread::id());
    while let Some(taken) = pool.next(&mut worker, KEEP_ALIVE_NS, os_thread::is_blocked) {
        if taken.hire {
            start_worker(pool);
        }
        // SAFETY: off the queue, so ours to run, once.
        unsafe { Job::run(taken.job) };
    }
    stay_for_children();
}

/// Waits for the end of the children that calls on this platform thread have started. To the kernel
/// this thread is their parent, and its end would send them the signal that they have asked for
/// (`PR_SET_PDEATHSIG`).
fn stay_for_children() {
    const PAUSE_NS: u64 = 1_000_000_000;
    let options = libc::WEXITED | libc::WNOWAIT | libc::__WNOTHREAD | libc::__WALL;
    // The kernel takes a null pointer too; valgrind reports it.
    let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
    let info = info.as_mut_ptr();
    // Other threads wait for the children, and take their status.
    // SAFETY: the kernel writes a `siginfo_t` there.
    let wait = || unsafe { call!(libc::SYS_waitid, libc::P_ALL, 0, info, options, 0) };
    // Afterwards there are no children, or the kernel does not tell.
    while matches!(wait(), Ok(_) | Err(Errno(libc::EINTR))) {
        sys::nap(PAUSE_NS);
    }
}
