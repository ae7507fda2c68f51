//! Preparations for interposed functions: before the program's own code runs, and when the runtime
//! starts.

use super::process::{credentials, dlfcn, handler};
use super::registry::{FAMILIES, Need};
use super::thread::sync::{self, semaphore};
use crate::{sanitizer, sys};
use core::ffi::{CStr, c_void};

/// The C library calls this before `main`, among the initialisers of the program.
#[used]
#[unsafe(link_section = ".init_array")]
static PREPARE: extern "C" fn() = prepare;

/// Looks up those functions behind ours that cannot wait for their first use. Runs again when the
/// runtime starts: a reference to this file keeps it in the program.
extern "C" fn prepare() {
    sanitizer::seal_keys();
    dlfcn::prepare();
    semaphore::prepare();
    handler::prepare();
}

/// Performs the last step of the runtime's start. There are carriers, but no virtual threads yet.
pub(crate) fn started() {
    prepare();
    if let Err(e) = dlfcn::catch_up() {
        sys::fatal(&[&e]);
    }
    credentials::take_over_handler();
}

/// Checks that the dynamic linker finds the interposed names in the object that contains this code.
///
/// Another definition of a name that is needed for [`Correctness`](Need::Correctness) is an error.
/// Other names may be defined by another preloaded library: then those calls block their carrier. A
/// name that nobody defines cannot be called, and a linker may leave it out (it exports the names
/// that its own C library has).
///
/// # Errors
/// Returns the name that is bound to another definition, and the possible reason.
pub(crate) fn verify() -> Result<(), String> {
    let own = object_of(verify as *const c_void);
    let families = FAMILIES.iter().filter(|f| f.need == Need::Correctness);
    for function in families.flat_map(|f| f.sections.iter().copied().flatten()) {
        // SAFETY: a valid C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, function.name.as_ptr()) };
        // Comparing with our address is not enough: in a shared library the dynamic linker resolves
        // that too.
        let ours = found.cast_const() == function.address && object_of(found) == own;
        if !found.is_null() && (own.is_null() || !ours) {
            return Err(bound_elsewhere(function.name));
        }
    }
    sync::check_layout()
}

fn bound_elsewhere(name: &CStr) -> String {
    format!(
        "the function `{}` is bound to another definition than pirn's: is pirn part of a library \
         that was loaded at run time, or is another library interposed (LD_PRELOAD)?",
        name.to_string_lossy()
    )
}

/// Returns the load address of the object that contains an address; null if there is none.
fn object_of(address: *const c_void) -> *mut c_void {
    // SAFETY: all zeros is a valid `Dl_info`; dladdr takes any address.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(address, &mut info);
        info.dli_fbase
    }
}
