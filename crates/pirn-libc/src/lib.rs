//! libc's blocking functions, redefined, for [`pirn`](https://docs.rs/pirn), the only user of this
//! crate: nothing here is stable.
//!
//! The linker binds every call in the program, and every call from shared libraries, to a
//! definition in the executable in preference to libc's own. So `std`, Rust crates and C libraries
//! call these functions. Each begins alike: on a platform thread, it does what libc would have done
//! (straight to the kernel, or through libc's definition); on a virtual thread, it does so without
//! blocking the carrier.
//!
//! One folder per area, one file per family; each file lists what it covers in a table at its head
//! ([`registry`]). libc's *internal* calls (of stdio, of the resolver's sockets) are bound inside
//! libc and do not reach this code; such functions are interposed as a whole where they block for
//! long.
//!
//! Rules for all of them: they keep C's conventions exactly (results, `errno`, what is written
//! when); nothing unwinds out of them; a virtual thread may be on another carrier after anything
//! that parks.

// The crates above use it, not programs.
#![allow(
    missing_docs,
    rustdoc::private_intra_doc_links,
    rustdoc::redundant_explicit_links
)]

mod by_number;
mod cancel;
mod families;
mod forward;
mod fs;
mod futex;
pub mod identity;
mod io;
mod net;
pub mod posix;
pub mod process;
mod registry;
pub mod signals;
pub mod simulated;
mod startup;
pub mod sync;
pub mod thread;
pub mod time;

#[cfg(feature = "async-io")]
pub use io::once;
pub use startup::{started, verify};
#[cfg(feature = "dump")]
pub use sync::owner_of;
pub use thread::lifecycle::{Start, answer_next_create};

use core::ffi::c_char;
use pirn_rt::sys::Errno;
use pirn_rt::vthread::{self, Current};

/// The name of a file, in tables of functions.
type Path = *const c_char;
/// Any other string of C's, in the same tables.
type Text = *const c_char;
/// A time or a duration, in the same tables.
type Time = *const libc::timespec;

/// Returns the addresses of all interposed functions, sorted.
#[cfg(feature = "dump")]
pub fn addresses() -> Vec<usize> {
    let sections = families::FAMILIES.iter().flat_map(|family| family.sections);
    let functions = sections.flat_map(|functions| functions.iter());
    let mut addresses: Vec<usize> = functions.map(|f| f.address.addr()).collect();
    addresses.sort_unstable();
    addresses
}

/// Forgets what threads of the parent were doing in libc.
///
/// # Safety
/// In the child of a fork that has no runtime yet.
pub unsafe fn after_fork() {
    // SAFETY: the caller's contract.
    unsafe {
        io::stdio::after_fork();
        process::exec::after_fork();
    }
}

/// Returns an empty list with room for `count` values. For a length that the caller chooses.
///
/// # Errors
/// `ENOMEM`.
pub(crate) fn reserved<T>(count: usize) -> Result<Vec<T>, Errno> {
    let mut list = Vec::new();
    match list.try_reserve_exact(count) {
        Ok(()) => Ok(list),
        Err(_) => Err(Errno(libc::ENOMEM)),
    }
}

/// Returns `count` zeros.
///
/// # Errors
/// `ENOMEM`.
pub(crate) fn zeros<T: Copy + From<u8>>(count: usize) -> Result<Vec<T>, Errno> {
    let mut list = reserved(count)?;
    list.resize(count, T::from(0));
    Ok(list)
}

/// Returns the virtual thread that the calling interposed function may park; `None`: it must act as
/// libc does.
#[inline(always)]
pub fn virtual_thread() -> Option<Current> {
    vthread::parkable()
}
