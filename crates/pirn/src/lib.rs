//! Virtual threads under the unchanged standard library.
//!
//! Change `use std::thread;` to `use pirn::thread;`, keep everything else: `std::net`,
//! `std::sync`, `std::fs`, `std::process`, and every blocking crate built on them now park the
//! virtual thread instead of the OS thread.
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
//! # How
//!
//! Each virtual thread has a stack *and a TLS block* of its own, and a switch changes both. To the
//! compiler, to `std` and to C libraries a virtual thread is a thread: thread-locals, `errno`,
//! panic state all belong to it and follow it from carrier to carrier. And this crate defines
//! libc's blocking functions (`read`, `accept4`, `poll`, `clock_nanosleep`, `syscall` with its
//! futexes, …), so that the linker binds everybody's calls to them; called on a virtual thread they
//! park it, called on a platform thread they go straight to the kernel.
//!
//! # The layers
//!
//! Each knows only those below it (the folders have the same names):
//!
//! | | |
//! |---|---|
//! | [`scope`](mod@scope), [`executor`], [`ScopedValue`] | structured concurrency; a thread for each task; values bound for a call |
//! | [`block_on`] and its like | bridges to async code |
//! | [`thread`] | `std::thread`'s names |
//! | `interpose` | libc's blocking functions, one file a family |
//! | `blocking` | waiting for futex words, descriptors, points in time, offloaded calls |
//! | `sched` | the [`Scheduler`] trait; work stealing over carriers |
//! | `vthread` | identity, state, park permit, mounting |
//! | `continuation` | stack, registers and TLS block |
//! | `stack` | slots of memory |
//! | `glibc`, `arch` | the TCB; the assembly |

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
compile_error!(
    "pirn supports x86-64 Linux with glibc, dynamically linked; other targets have no TLS layout and no \
     interposition that it knows"
);
#[cfg(target_feature = "crt-static")]
compile_error!(
    "pirn cannot interpose libc in a statically linked program: remove `-C target-feature=+crt-static`"
);

mod alloc;
mod arch;
mod blocking;
mod bridge;
mod config;
mod continuation;
pub mod executor;
mod glibc;
mod interpose;
mod local;
mod lock;
mod notices;
mod poison;
mod primitives;
mod runtime;
mod sched;
pub mod scope;
mod scoped_value;
mod stack;
mod sys;
pub mod thread;
mod time;
mod vthread;

pub use alloc::OnCarrier;
#[cfg(feature = "crossbeam-channel")]
pub use bridge::{Interruption, interruption};
pub use bridge::{block_on, block_on_interruptible};
pub use config::{Config, ConfigError};
#[cfg(feature = "macros")]
pub use pirn_macros::{main, test};
pub use sched::{Runnable, Scheduler};
#[doc(inline)]
pub use scope::scope;
pub use scoped_value::ScopedValue;

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private;
