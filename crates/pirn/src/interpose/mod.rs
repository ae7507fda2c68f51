//! libc's blocking functions, defined anew.
//!
//! The linker binds every call in the program, and every call from shared libraries, to a
//! definition in the executable in preference to libc's own. So these functions are what `std`,
//! Rust crates and C libraries call. Each begins alike: on a platform thread, do what libc would
//! have done (straight to the kernel, or on to libc's definition); on a virtual thread, do it
//! without blocking the carrier.
//!
//! One folder per area, one file per family. What libc calls *internally* (stdio, the resolver's
//! sockets) is bound inside libc and does not come by here; such functions are interposed as a
//! whole where they block for long.
//!
//! Rules for all of them: C's conventions exactly (results, `errno`, what is written when); nothing
//! unwinds out of them; a virtual thread may be on another carrier after anything that parks.

mod fs;
mod futex;
mod io;
mod net;
pub(crate) mod process;
mod startup;
mod thread;
mod time;

pub(crate) use process::started;

use crate::vthread::{self, Core};
use core::ffi::{CStr, c_void};

/// The virtual thread to be parked by the interposed function that asks; none: do as libc does.
#[inline(always)]
fn virtual_thread() -> Option<&'static Core> {
    vthread::current()
}

/// Some of our definitions, of every family: that the table refers to them also keeps the linker
/// from dropping the object files they are in.
fn table() -> [(&'static CStr, *const c_void); 17] {
    [
        (c"read", io::rw::read as *const c_void),
        (c"close", io::rw::close as *const c_void),
        (c"recv", net::socket::recv as *const c_void),
        (c"accept4", net::socket::accept4 as *const c_void),
        (c"connect", net::socket::connect as *const c_void),
        (c"poll", io::poll::poll as *const c_void),
        (c"select", io::select::select as *const c_void),
        (c"fcntl", io::fcntl::fcntl as *const c_void),
        (c"clock_nanosleep", time::clock_nanosleep as *const c_void),
        (c"syscall", futex::syscall as *const c_void),
        (c"writev", io::transfer::writev as *const c_void),
        (c"statx", fs::calls::statx as *const c_void),
        (c"readdir64", fs::dir::readdir64 as *const c_void),
        (c"waitpid", process::wait::waitpid as *const c_void),
        (c"__read_chk", io::fortified::__read_chk as *const c_void),
        (
            c"pthread_setspecific",
            thread::pthread_setspecific as *const c_void,
        ),
        (
            c"pthread_getspecific",
            thread::pthread_getspecific as *const c_void,
        ),
    ]
}

/// Checks that the dynamic linker, asked for these names, finds them in the object that this code
/// is in.
///
/// Comparing addresses would not do: inside a shared library even our own address of `read` is what
/// the dynamic linker says.
pub(crate) fn verify() -> Result<(), String> {
    let own = object_of(verify as *const c_void);
    for (name, ours) in table() {
        // SAFETY: a valid C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if found.cast_const() != ours || own.is_null() || object_of(found) != own {
            return Err(format!(
                "the function `{}` is bound to another definition than pirn's: is pirn part of a library \
                 that was loaded at run time, or is another library interposed (LD_PRELOAD)?",
                name.to_string_lossy()
            ));
        }
    }
    thread::sync::check_layout()
}

/// Where the object is loaded that an address belongs to; null for none.
fn object_of(address: *const c_void) -> *mut c_void {
    // SAFETY: all zeros is a valid `Dl_info`; dladdr takes any address.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(address, &mut info);
        info.dli_fbase
    }
}
