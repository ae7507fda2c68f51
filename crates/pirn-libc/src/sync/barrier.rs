//! `pthread_barrier_t`: ours, for all threads, unless it is shared between processes.
//!
//! libc's would wait in libc, and there is no `try`. A barrier has no static initialiser, so our
//! `init` makes each. One atomic word holds the number of threads that have arrived and the number
//! of the round; the last thread to arrive begins the next round and wakes the others.

use crate::registry::interposed;
use crate::virtual_thread;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use libc::{pthread_barrier_t, pthread_barrierattr_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::{futex, pool};
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};

interposed! {
    family "Barriers" for Correctness;

    Parks by hand {
        pthread_barrier_wait: "on a platform thread of its own if shared between processes",
        pthread_barrier_destroy,
    }
    Own by hand { pthread_barrier_init }
}

/// In the memory of a `pthread_barrier_t`. libc's own takes the first 20 bytes of it.
#[repr(C)]
struct Barrier {
    /// The number of threads that have arrived; in the upper half the number of the round.
    state: AtomicU64,
    count: AtomicU32,
    /// Threads that may still touch this memory.
    inside: AtomicU32,
    unused: u64,
    /// [`OURS`]; otherwise the barrier is libc's.
    mark: AtomicU64,
}

const OURS: u64 = 0x0062_6f62_6269_6e00;
/// glibc's limit.
const MAX: u32 = u32::MAX / 2;

const _: () = assert!(size_of::<Barrier>() <= size_of::<pthread_barrier_t>());
const _: () = assert!(align_of::<Barrier>() <= align_of::<pthread_barrier_t>());
const _: () = assert!(core::mem::offset_of!(Barrier, mark) >= 20);

#[libc_fn]
pub unsafe fn pthread_barrier_init(
    barrier: *mut pthread_barrier_t,
    attributes: *const pthread_barrierattr_t,
    count: u32,
) -> c_int {
    if !(1..=MAX).contains(&count) {
        return libc::EINVAL;
    }
    let ours = barrier.cast::<Barrier>();
    let mut shared = 0;
    // SAFETY: the caller's contract: memory for a barrier, and valid attributes or none.
    unsafe {
        if !attributes.is_null() {
            libc::pthread_barrierattr_getpshared(attributes, &mut shared);
        }
        if shared != libc::PTHREAD_PROCESS_PRIVATE {
            (*ours.cast::<MaybeUninit<Barrier>>())
                .write(Barrier::new(count))
                .mark = AtomicU64::new(0);
            return libcs!();
        }
        ours.write(Barrier::new(count));
    }
    0
}

#[libc_fn]
pub unsafe fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int {
    // SAFETY: the caller's contract: an initialised barrier.
    if let Some(ours) = unsafe { ours(barrier) } {
        return if ours.wait() {
            libc::PTHREAD_BARRIER_SERIAL_THREAD
        } else {
            0
        };
    }
    let wait = || libcs!();
    if virtual_thread().is_none() {
        return wait();
    }
    // libc's function does not distinguish threads, so a platform thread may wait for us.
    let serial = pool::dedicated(WaitReason::at(Kind::Barrier, barrier.addr()), || {
        Ok(usize::from(wait() == libc::PTHREAD_BARRIER_SERIAL_THREAD))
    });
    if serial == Ok(1) {
        libc::PTHREAD_BARRIER_SERIAL_THREAD
    } else {
        0
    }
}

/// Waits for threads that have passed the barrier but not yet left it.
#[libc_fn]
pub unsafe fn pthread_barrier_destroy(barrier: *mut pthread_barrier_t) -> c_int {
    // SAFETY: the caller's contract: an initialised barrier.
    let Some(ours) = (unsafe { ours(barrier) }) else {
        return libcs!();
    };
    if ours.state.load(Ordering::Relaxed) as u32 > 0 {
        return libc::EBUSY; // Threads are waiting: a bug in the program. Keep the memory valid for them.
    }
    // Acquire: pairs with the Release of the last to leave.
    while ours.inside.load(Ordering::Acquire) > 0 {
        crate::time::sched_yield();
    }
    ours.mark.store(0, Ordering::Relaxed); // Relaxed: no thread uses it any more.
    0
}

/// Returns the barrier, if it is one of ours.
unsafe fn ours<'a>(barrier: *const pthread_barrier_t) -> Option<&'a Barrier> {
    // SAFETY: the caller's contract: initialised by `pthread_barrier_init`, whichever kind it is.
    let ours = unsafe { &*barrier.cast::<Barrier>() };
    // Relaxed: a thread that uses a barrier has seen its initialisation.
    (ours.mark.load(Ordering::Relaxed) == OURS).then_some(ours)
}

impl Barrier {
    fn new(count: u32) -> Barrier {
        Barrier {
            state: AtomicU64::new(0),
            count: AtomicU32::new(count),
            inside: AtomicU32::new(0),
            unused: 0,
            mark: AtomicU64::new(OURS),
        }
    }

    /// Waits for the others. Returns whether the caller came last.
    fn wait(&self) -> bool {
        self.inside.fetch_add(1, Ordering::Relaxed); // Relaxed: the caller keeps the barrier alive until it returns.
        let (round, last) = self.arrive();
        if last {
            futex::wake_waiters(self.word_of_round(), i32::MAX);
        } else {
            // Acquire: pairs with the Release of the last thread to arrive, and so with all
            // threads.
            while (self.state.load(Ordering::Acquire) >> 32) as u32 == round {
                // SAFETY: the word is valid, as the barrier is.
                unsafe {
                    let barrier = core::ptr::from_ref(self).addr();
                    futex::wait_while(Kind::Barrier, barrier, self.word_of_round(), round);
                }
            }
        }
        self.inside.fetch_sub(1, Ordering::Release); // Release: pairs with the Acquire in `destroy`.
        last
    }

    /// Counts the caller in. Returns the number of the round, and whether the round is complete.
    fn arrive(&self) -> (u32, bool) {
        let count = self.count.load(Ordering::Relaxed); // Relaxed: constant.
        let mut seen = self.state.load(Ordering::Relaxed); // Relaxed: the exchange decides.
        loop {
            let (round, arrived) = ((seen >> 32) as u32, seen as u32 + 1);
            let last = arrived == count;
            let next = if last {
                u64::from(round.wrapping_add(1)) << 32
            } else {
                seen + 1
            };
            // Release, Acquire: what each thread has done before is visible to all after.
            match self
                .state
                .compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return (round, last),
                Err(other) => seen = other,
            }
        }
    }

    /// Returns the address of the number of the round: the upper half of the state, as x86-64 is
    /// little-endian.
    fn word_of_round(&self) -> *const u32 {
        // Inside of the state.
        self.state.as_ptr().cast::<u32>().wrapping_add(1)
    }
}
