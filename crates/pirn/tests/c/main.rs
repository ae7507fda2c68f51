//! The services that C code uses: pthreads, thread-local storage, signals, `fork`, `setuid`,
//! sleeps.

#[path = "../common/mod.rs"]
mod common;

extern crate pirn_posix as _;

mod c_checks;
mod fork;
mod futex_operations;
mod futexes;
mod handler_jumps;
mod handlers_in_sections;
mod identity;
mod initialisers;
mod many_readers;
mod posix;
mod pthread;
mod pthread_contexts;
mod pthread_create;
mod pthread_delivery;
mod pthread_keys;
mod pthread_signals;
mod setuid;
mod signal_handlers;
mod signals;
mod sleeps_and_timers;
mod tls;
