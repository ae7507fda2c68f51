//! Model checks: the runtime's protocols on loom's atomics, in all interleavings of small cases.
//!
//! Loom runs each model once for every order of steps (up to a number of preemptions) and for every
//! value that a load may see by the C11 memory model. It fails if two threads that are not ordered
//! access an `UnsafeCell`. So a missing edge shows as such a failure, even where the hardware would
//! hide it.
//!
//! Loom runs steps one after the other, so it cannot see the effect of a load that is delayed past
//! a later store. Hence it does not notice if `LocalQueue` weakens the Acquire of `head` where
//! slots are used again (`push_back`, and `dest` in `steal_into`).
//!
//! A parked virtual thread is modelled as a continuation that is run by whichever thread has the
//! duty to run it. Carriers and the monitor do wait, for the kernel modelled in `surroundings.rs`.
//! If a wake-up is lost, loom finds all threads asleep, and fails.
//!
//! Loom treats `SeqCst` accesses as acquire and release only, but supports fences. So the protocols
//! of sleeping have explicit fences, and relaxed accesses where these suffice. Each fence and each
//! ordering has been weakened once to see a model fail.

#[path = "../../../pirn-rt/src/reactor/attendance.rs"]
mod attendance;
#[path = "../../../pirn-rt/src/blocking/fds/waiters.rs"]
mod fd_waiters;
#[path = "../../../pirn-rt/src/sched/idle.rs"]
#[allow(dead_code)]
// The hint for short queues only omits wake-ups that the monitor makes up for.
mod idle;
#[path = "../../../pirn-rt/src/sched/injector.rs"]
#[allow(dead_code)] // What the processors' queues need.
mod injector;
#[path = "../../../pirn-rt/src/reactor/jobs.rs"]
#[allow(dead_code)] // The case in which no thread can be started runs under the lock.
mod jobs;
#[path = "../../../pirn-rt/src/blocking/list.rs"]
#[allow(dead_code)] // Some of it is for other lists.
mod list;
#[path = "../../../pirn-rt/src/sched/local_queue.rs"]
mod local_queue;
#[path = "../../../pirn-rt/src/blocking/parking_lot/count.rs"]
mod lot_count;
#[path = "../../../pirn-actor/src/mailbox/word.rs"]
#[allow(dead_code)] // Flags that are like others.
mod mailbox_word;
#[path = "../../../pirn-rt/src/carriers/nap.rs"]
mod nap;
#[path = "../../../pirn-rt/src/sched/preempt/request.rs"]
#[allow(dead_code)] // What the holder alone uses.
mod preempt_request;
#[path = "../../../pirn-rt/src/blocking/fds/protocol.rs"]
#[allow(dead_code)] // Some of it is for the table of descriptors only.
mod readiness;
#[path = "../../../pirn-rt/src/sched/ready_queue.rs"]
#[allow(dead_code)] // As for the injector.
mod ready_queue;
#[path = "../../../pirn-actor/src/reply/word.rs"]
mod reply_word;
#[path = "../../../pirn-rt/src/blocking/fds/review/protocol.rs"]
mod review;
#[path = "../../../pirn-rt/src/recorder/ring.rs"]
mod ring;
#[path = "../../../pirn-rt/src/sched/run.rs"]
#[allow(dead_code)] // What counting begins with.
mod run;
#[path = "../../../pirn-rt/src/recorder/shared.rs"]
mod shared_ring;
#[path = "../../../pirn-rt/src/sys/sleeper.rs"]
mod sleeper;
#[path = "../../../pirn-rt/src/sched/spare.rs"]
#[allow(dead_code)] // The monitor's questions.
mod spare;
#[path = "../../../pirn-rt/src/sched/current_stack/request.rs"]
mod stack_request;
#[path = "../../../pirn-rt/src/vthread/state.rs"]
#[allow(dead_code)] // Times, and what dumps ask.
mod state;
#[path = "../../../pirn-rt/src/vthread/wait_word.rs"]
#[allow(dead_code)]
// A wait with a word of its own, which no interrupter knows, is a special case of this.
mod wait_word;

mod primitives {
    //! Loom's atomics under the runtime's names.
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

mod blocking {
    //! The surroundings of `readiness`.
    pub(crate) use crate::{list, surroundings::task, surroundings::wait};
    pub(crate) mod fds {
        pub(crate) use crate::fd_waiters as waiters;
    }
}

mod surroundings;
use surroundings::{arch, lock, sched, sys, time, vthread};

mod attendance_model;
mod handshake_model;
mod idle_model;
mod injector_model;
mod jobs_model;
mod join_model;
mod local_queue_model;
mod lot_model;
mod mailbox_model;
mod mount_flags_model;
mod nap_model;
mod park_model;
mod permit_model;
mod preempt_request_model;
mod readiness_model;
mod recorder_model;
mod reply_model;
mod resident_model;
mod review_model;
mod run_model;
mod safepoint_model;
mod sleeper_model;
mod spare_model;
mod stack_request_model;
mod task_model;
mod wait_word_model;

use loom::cell::UnsafeCell;

/// Explores `model` with up to `preemptions` involuntary switches per execution.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A plain word of memory that one thread writes and another reads. Loom checks that each access is
/// ordered with the others.
struct Word(UnsafeCell<u32>);

impl Word {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn write(&self, value: u32) {
        // SAFETY: loom panics before it gives the pointer to two threads at once.
        self.0.with_mut(|word| unsafe { *word = value });
    }

    fn read(&self) -> u32 {
        // SAFETY: loom panics before it gives the pointer while another thread writes.
        self.0.with(|word| unsafe { *word })
    }
}

// SAFETY: loom checks each access; see above.
unsafe impl Sync for Word {}
