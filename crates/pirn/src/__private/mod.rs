//! What `pirn-sim` and the output of `pirn-macros` call. Not for use by hand.

#[cfg(feature = "macros")]
mod std_thread;

pub use crate::start::simulate;
#[cfg(feature = "macros")]
pub use std_thread::{run_main, run_test};
