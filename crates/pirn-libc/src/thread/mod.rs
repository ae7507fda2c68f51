//! `pthread.h`, except its locks ([`sync`]) and signals
//! ([`signals`](crate::process::signals)).
//!
//! `pthread_self()` of a virtual thread is the address of its TCB, as for any thread. glibc would
//! take it for one of its own threads and look there for data that only a kernel thread has. So the
//! functions of [`lifecycle`] and [`identity`] check whether the given thread is a virtual one.
//!
//! These work unchanged: `pthread_{self,equal}`, attributes.
//!
//! All this holds for threads of `pirn::thread`, which to C are detached. A process may also
//! have `pthread_create` make virtual threads ([`policy`]): then these are made by [`create`], have
//! a record ([`pthread`]) and can be joined, and `gettid` tells all virtual threads apart
//! ([`by_id`]); otherwise `gettid` is the carrier's.
//! [`clocks`] are those of their CPU time.
//! [`chosen`] knows those that shall be platform threads, and [`account`] says what has been made.
//! [`header`] is what `pirn.h` declares.
//! [`leaving`] ends a process whose `main` has called `pthread_exit`.

pub(crate) mod aliases;
pub(crate) mod attributes;
pub(crate) mod by_id;
pub(crate) mod c11;
pub(crate) mod cancel;
pub(crate) mod clocks;
pub(crate) mod identity;
pub(crate) mod ids;
pub mod lifecycle;
pub mod names;
pub mod robust;
pub(crate) mod scheduling;
pub mod specific;
pub(crate) mod sync;
pub mod wishes;

pub use identity::slot_of;
pub(crate) use lifecycle::{pthread_exit, pthread_join};
pub(crate) use specific::{note_key, pthread_getspecific, pthread_key_delete, pthread_setspecific};
pub(crate) use sync::by_stand_in::after_fork as robust_after_fork;

use libc::pthread_t;
use pirn_rt::{runtime, vthread};

/// Returns whether a thread is a virtual one.
pub fn is_virtual(thread: pthread_t) -> bool {
    runtime::is_started() && slot_of(thread).is_some()
}

/// Calls `function`, which must not unwind, on the running platform thread or the running virtual
/// thread's carrier, and blocks that thread.
pub(crate) fn on_carrier<R>(function: impl FnOnce() -> R) -> R {
    // SAFETY: `function` calls libc's functions, which do not unwind.
    unsafe { vthread::on_carrier(function) }
}
