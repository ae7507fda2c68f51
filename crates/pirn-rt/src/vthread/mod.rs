//! A virtual thread: its identity and state, and how it gets on and off a platform thread.
//!
//! * [`state`]: the words of a thread, in one drawing, and their lock-free protocols
//!   (model-checked, as is [`wait_word`], the largest of them).
//! * [`record`]: the runtime's data about a thread. [`body`]: the closure that it runs, and its
//!   result. [`magazines`]: recycled memory for both.
//! * [`handles`]: the rights to run and to wake a thread, the running thread, counted references.
//! * [`identity`]: ids and names of threads, and the record of a platform thread.
//! * [`mount`]: mounting and unmounting. [`life`]: a thread's first and last moments.
//! * [`table`]: all threads by their slots, and those that are mounted by their carriers.
//! * [`summons`]: having a thread run something; [`signals`]: which it blocks, and what is pending.
//! * [`awaited`]: what a thread waits for.
//! * [`recorded`]: what the recorder of events is told of threads. [`cpu_time`]: how much of it a
//!   thread has used. [`extra_state`]: registers that a switch carries in few programs.
//! * [`helper`]: the runtime's own platform threads.
//! * [`overflow`]: the signal handler that names the thread that ran out of stack. [`carrier_tls`]:
//!   running a libc function on the platform thread's own TLS.
//! * [`keys`]: the values of `pthread_key`s, and their destructors.

pub mod awaited;
pub mod body;
mod carrier_tls;
pub mod cpu_time;
pub mod extra_state;
mod handles;
pub mod helper;
pub mod identity;
pub mod keys;
pub mod life;
pub mod magazines;
pub mod mount;
pub mod overflow;
pub mod record;
pub mod recorded;
pub mod signals;
#[cfg_attr(not(feature = "dump"), allow(dead_code))]
pub mod state;
pub mod summons;
pub mod table;
pub mod wait_word;

pub use body::ClosureBody;
pub use handles::{Claimed, Current, Dispatch, Ready, ThreadRef};
pub use helper::{ROOMY, force_platform, start_helper};
pub use life::{run_destructors, set_end_in_child};
pub use mount::{Carrier, carrier, current, on_carrier, parkable};
pub use record::Core;
