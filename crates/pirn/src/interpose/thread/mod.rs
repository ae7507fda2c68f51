//! `pthread.h`, except its locks ([`sync`]) and signals
//! ([`signals`](crate::interpose::process::signals)).
//!
//! `pthread_self()` of a virtual thread is the address of its TCB, as for any thread. glibc would
//! take it for one of its own threads and look there for data that only a kernel thread has. So the
//! functions of [`lifecycle`] and [`identity`] check whether the given thread is a virtual one.
//!
//! These work unchanged: `pthread_{self,equal}`, attributes.
//!
//! All this holds for threads of [`crate::thread`], which to C are detached. A process may also
//! have `pthread_create` make virtual threads ([`policy`]): then these are made by [`create`], have
//! a record ([`pthread`]) and can be joined, and `gettid` tells all virtual threads apart
//! ([`by_id`]); otherwise `gettid` is the carrier's.
//! [`clocks`] are those of their CPU time.
//! [`chosen`] knows those that shall be platform threads, and [`account`] says what has been made.
//! [`header`] is what `pirn.h` declares.
//! [`leaving`] ends a process whose `main` has called `pthread_exit`.

mod account;
pub(in crate::interpose) mod aliases;
pub(in crate::interpose) mod attributes;
pub(in crate::interpose) mod by_id;
pub(in crate::interpose) mod c11;
pub(in crate::interpose) mod cancel;
mod chosen;
pub(in crate::interpose) mod clocks;
pub(in crate::interpose) mod create;
mod header;
pub(in crate::interpose) mod identity;
pub(in crate::interpose) mod ids;
mod leaving;
pub(in crate::interpose) mod lifecycle;
pub(in crate::interpose) mod names;
mod policy;
mod pthread;
mod robust;
pub(in crate::interpose) mod scheduling;
pub(in crate::interpose) mod specific;
pub(in crate::interpose) mod sync;
pub(in crate::interpose) mod wishes;

pub(in crate::interpose) use identity::slot_of;
pub(in crate::interpose) use leaving::after_fork as count_anew;
pub(in crate::interpose) use lifecycle::{pthread_exit, pthread_join};
pub(crate) use policy::is_on as pthreads_are_virtual;
pub(in crate::interpose) use pthread::core_of;
pub(in crate::interpose) use specific::{
    note_key, pthread_getspecific, pthread_key_delete, pthread_setspecific,
};
pub(in crate::interpose) use sync::by_stand_in::after_fork as robust_after_fork;

use libc::pthread_t;
use pirn_rt::{runtime, vthread};

/// Returns whether a thread is a virtual one.
fn is_virtual(thread: pthread_t) -> bool {
    runtime::is_started() && slot_of(thread).is_some()
}

/// Calls `function`, which must not unwind, on the running platform thread or the running virtual
/// thread's carrier, and blocks that thread.
pub(in crate::interpose) fn on_carrier<R>(function: impl FnOnce() -> R) -> R {
    // SAFETY: `function` calls libc's functions, which do not unwind.
    unsafe { vthread::on_carrier(function) }
}
