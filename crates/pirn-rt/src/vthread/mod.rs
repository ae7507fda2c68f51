//! A virtual thread: its record, its words, and the handles that others have of it. Nothing here
//! knows the scheduler: what follows from a change is returned to the caller, as a duty.
//!
//! * [`state`]: the words of a thread, in one drawing, and their lock-free protocols
//!   (model-checked, as is [`wait_word`], the largest of them).
//! * [`record`]: the runtime's data about a thread. [`wait_reason`]: what it waits for.
//! * [`handles`]: the rights to run and to wake a thread, the running thread, counted references.
//! * [`join`]: the end of a thread, and what waits for it.
//! * [`identity`]: ids and names of threads, and the record of a platform thread.
//! * [`table`]: all threads by their slots.
//! * [`signals`]: which it blocks, and what is pending. [`keys`]: the values of `pthread_key`s, and
//!   their destructors. [`extra_state`]: registers that a switch carries in few programs.
//! * [`overflow`]: the signal handler that names the thread that ran out of stack.
//! * [`helper`]: the runtime's own platform threads.

pub mod extra_state;
mod handles;
pub mod helper;
pub mod identity;
pub mod join;
pub mod keys;
pub mod overflow;
pub mod record;
pub mod signals;
#[cfg_attr(not(feature = "dump"), allow(dead_code))]
pub mod state;
pub mod table;
pub mod wait_reason;
pub mod wait_word;

pub(crate) use handles::set_current;
pub use handles::{Claimed, Current, Dispatch, Ready, ThreadRef};
pub use handles::{become_platform_thread, current, parkable};
pub use helper::{HELPER_STACK, force_platform, start_helper};
pub use record::Core;
