//! `pthread.h`, except its locks ([`sync`](crate::sync)) and signals
//! ([`signals`](crate::signals)).
//!
//! `pthread_self()` of a virtual thread is the address of its TCB, as for any thread. glibc would
//! take it for one of its own threads and look there for data that only a kernel thread has. So the
//! functions here check whether the given thread is a virtual one.
//!
//! These work unchanged: `pthread_{self,equal}`, attributes.
//!
//! All this holds for threads of `pirn::thread`, which to C are detached. Where `pthread_create`
//! makes virtual threads ([`posix`](crate::posix)), these can be joined, and `gettid` tells all
//! virtual threads apart ([`identity`](crate::identity)).

pub(crate) mod aliases;
pub(crate) mod attr;
pub(crate) mod ids;
pub mod lifecycle;
pub mod names;
pub mod scheduling;
pub mod specific;

pub(crate) use lifecycle::{pthread_exit, pthread_join};
pub(crate) use specific::{note_key, pthread_getspecific, pthread_key_delete, pthread_setspecific};
