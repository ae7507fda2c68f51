//! Channels of crates: `crossbeam-channel` and `flume`, and what both of them must do.

mod crossbeam;
mod crossbeam_interruption;
mod flume;
mod shared;

use pirn_compat as common;
