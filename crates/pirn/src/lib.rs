//! Virtual threads under the unchanged standard library.
//!
//! Change `use std::thread;` to `use pirn::thread;` and keep everything else: `std::net`,
//! `std::sync`, `std::fs`, `std::process`, and every blocking crate built on them now park the
//! virtual thread instead of blocking the OS thread.
//!
//! ```
//! use pirn::thread;
//! use std::time::Duration;
//!
//! let handles: Vec<_> = (0..10_000)
//!     .map(|i| thread::spawn(move || {
//!         std::thread::sleep(Duration::from_millis(10)); // parks, does not block
//!         i
//!     }))
//!     .collect();
//! let sum: u64 = handles.into_iter().map(|h| h.join().unwrap()).sum();
//! assert_eq!(sum, 49_995_000);
//! ```
//!
//! `#[pirn::main]` puts `main` itself on a virtual thread, and `#[pirn::test]` a test:
//!
//! ```
//! # #[cfg(feature = "macros")] mod with_macros {
//! #[pirn::main]
//! fn main() {
//!     assert!(pirn::thread::current().is_virtual());
//! }
//! # }
//! ```
//!
//! # What is here
//!
//! | | |
//! |---|---|
//! | [`thread`] | the names of `std::thread`: [`spawn`](thread::spawn), [`Builder`](thread::Builder), [`scope`](thread::scope()), [`park`](thread::park), [`sleep`](thread::sleep); and [interrupting](thread::Thread::interrupt) |
//! | [`scope`](mod@scope) | structured concurrency: subtasks are forked and joined, a failure cancels the others, and none is left behind |
//! | [`executor`] | one thread per task, and waiting for all of them at the end |
//! | [`ScopedValue`] | values bound during a call, which forks inherit |
//! | [`block_on`] | runs a future on a virtual thread, which parks; a [`JoinHandle`](thread::JoinHandle) is a future for async code |
//! | [`AsyncIo`] | a descriptor for async code on [`block_on`]: any crate of a protocol that needs no runtime of its own |
//! | [`Config`] | settings |
//! | [`Scheduler`] | the trait for custom schedulers |
//! | [`dump`](mod@dump) | all virtual threads, with their stacks |
//! | [`metrics`](mod@metrics) | counts of threads by state, latencies, memory |
//! | [`events`] | what threads did lately: keeping it, and writing it down when something goes wrong |
//! | [`OnCarrier`] | a wrapper for allocators other than libc's |
//!
//! There is no `pirn::net` and no `pirn::sync`: everything else is `std`'s.
//!
//! # Platforms
//!
//! Linux from 5.9 on, on x86-64 and AArch64, with glibc from 2.34 on, dynamically linked. Other
//! platforms get one clear error: at compile time, or of the first spawn. On x86-64 without
//! FSGSBASE (in processors of Intel since Ivy Bridge, of AMD since Steamroller) a switch between
//! threads makes a system call. Link the library into the executable: in a plug-in that is opened
//! with `dlopen` its definitions do not take precedence over libc's.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `macros` | yes | `#[pirn::main]` and `#[pirn::test]` |
//! | `dump` | yes | looking inside: dumps, metrics, events, diagnostics, tools; without it and `macros` libc is the only dependency |
//! | `futures-io`, `hyper-io`, `tokio-io` | no | [`AsyncIo`] reads and writes through the traits of `futures-io`, `hyper` and `tokio`; without the latter's runtime |
//! | `rustix-use-libc` | no | makes `rustix` use libc for its system calls, in the whole program |
//!
//! # Settings
//!
//! All settings are optional. A program sets them with [`Config`] before its first virtual thread;
//! its operator sets them with variables (`PIRN_PARALLELISM`, `PIRN_STACK_SIZE`, …), which take
//! precedence. [`Config`] has a table of all.
//!
//! # How it works
//!
//! Each virtual thread has a stack *and a TLS block* of its own, and a switch changes both. To the
//! compiler, to `std` and to C libraries a virtual thread is a thread: thread-locals, `errno` and
//! the panic state all belong to it and follow it from one OS thread to another. This crate also
//! defines libc's blocking functions (`read`, `accept4`, `poll`, `clock_nanosleep`, `syscall` with
//! its futexes, …), so that the linker binds all calls to them. Called on a virtual thread they
//! park it; called on a platform thread they do what libc's functions do.
//!
//! # Limits
//!
//! * **System calls made without libc** are not seen, and block the OS thread: `rustix` makes such
//!   calls unless its feature `use-libc` is on (feature `rustix-use-libc`).
//! * **A thread that computes is preempted** after 10 ms if others wait, but not in libc's code,
//!   nor in a signal handler. If all carriers have been stuck for 4 ms, an OS thread is added for
//!   the threads that wait, up to 16 of them.
//! * **Stacks do not grow.** Unless set, the first 4,096 threads alive have 2 MiB of address space
//!   each, as in `std`, those beyond 256 KiB (2 MiB with debug assertions). An overflow is reported
//!   with the thread's name, and aborts.
//! * **`gettid` is the OS thread's,** and a virtual thread cannot be bound to a CPU. Its signal
//!   mask and its alternative signal stack are its own, and so is its CPU time, from the first
//!   question for the CPU time of any thread on.
//! * **After `fork`** the child has one thread and cannot spawn virtual ones. (`Command` works.)
//!
//! `docs/limits.md` in the repository has the full list.

// The layers, which `docs/architecture.md` describes, are folders of the same names.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_env = "gnu"
)))]
compile_error!(
    "pirn supports x86-64 and AArch64 Linux with glibc, dynamically linked; other targets are not \
     supported"
);
#[cfg(target_feature = "crt-static")]
compile_error!(
    "pirn cannot interpose libc in a statically linked program: remove `-C target-feature=+crt-static`"
);

mod async_io;
mod config;
pub mod executor;
#[cfg_attr(not(feature = "dump"), path = "unobserved.rs")]
mod observe;
mod on_carrier;
mod panic;
pub mod scope;
mod scoped_value;
mod start;
#[cfg(test)]
mod testing;
pub mod thread;

pub use async_io::AsyncIo;
pub use config::{Config, ConfigError};
#[cfg(feature = "dump")]
#[doc(inline)]
pub use observe::{dump, events, metrics};
pub use on_carrier::OnCarrier;
#[cfg(feature = "macros")]
pub use pirn_macros::{main, test};
#[cfg(feature = "dump")]
#[doc(hidden)]
pub use pirn_observe::GDB_SCRIPT;
pub use scoped_value::ScopedValue;
pub use thread::block_on::{block_on, block_on_interruptible};
pub use thread::scheduler::{Runnable, Scheduler};

/// The code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;

#[doc(hidden)]
pub mod __private;
