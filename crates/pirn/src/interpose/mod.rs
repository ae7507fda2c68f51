//! libc's blocking functions, defined anew.
//!
//! The linker binds every call in the program, and every call from shared libraries, to a
//! definition in the executable in preference to libc's own. So these functions are what `std`,
//! Rust crates and C libraries call. Each begins alike: on a platform thread, do what libc would
//! have done (straight to the kernel, or on to libc's definition); on a virtual thread, do it
//! without blocking the carrier.
//!
//! One folder per area, one file per family; each says what it covers in a table at its head
//! ([`registry`]). What libc calls *internally* (stdio, the resolver's
//! sockets) is bound inside libc and does not come by here; such functions are interposed as a
//! whole where they block for long.
//!
//! Rules for all of them: C's conventions exactly (results, `errno`, what is written when); nothing
//! unwinds out of them; a virtual thread may be on another carrier after anything that parks.

mod by_number;
mod fs;
mod futex;
mod io;
mod net;
pub(crate) mod process;
mod registry;
mod startup;
mod thread;
mod time;

pub(crate) use startup::{started, verify};
#[cfg(feature = "macros")]
pub(crate) use thread::lifecycle::{Start, answer_next_create};

use crate::vthread::{self, Current};

/// Returns the virtual thread that the interposed function that asks may park. `None`: it is to do
/// as libc does.
#[inline(always)]
fn virtual_thread() -> Option<Current> {
    vthread::parkable()
}
