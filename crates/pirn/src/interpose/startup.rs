//! What must be done before interposed functions are used: before the program's own code runs, and
//! when the runtime starts.

use super::process::{credentials, dlfcn, handler};
use super::registry::{FAMILIES, Need};
use super::thread::sync::{self, semaphore};
use crate::sys;
use core::ffi::{CStr, c_void};

/// Called by the C library before `main`, among the initialisers of the program.
#[used]
#[unsafe(link_section = ".init_array")]
static PREPARE: extern "C" fn() = prepare;

/// Looks up those functions that ours shadow, which cannot wait for their first use. Once
/// more when the runtime starts: a reference to this file keeps it in the program.
extern "C" fn prepare() {
    dlfcn::prepare();
    semaphore::prepare();
    handler::prepare();
}

/// The last step of the runtime's start. There are carriers, but no virtual threads yet.
pub(crate) fn started() {
    prepare();
    if let Err(e) = dlfcn::catch_up() {
        sys::fatal(&[&e]);
    }
    credentials::take_over_handler();
}

/// Checks that the dynamic linker, asked for the interposed names, finds them in the object that
/// this code is in.
///
/// Another definition of a name that is needed for [`Correctness`](Need::Correctness) is an error.
/// One that is not, another preloaded library may have: then those calls block their carrier. A
/// name that nobody defines cannot be called, and a linker may leave it out (it exports what the C
/// library has that it links with).
///
/// # Errors
/// The name that is bound to another definition, and what the reason may be.
pub(crate) fn verify() -> Result<(), String> {
    let own = object_of(verify as *const c_void);
    let families = FAMILIES.iter().filter(|f| f.need == Need::Correctness);
    for function in families.flat_map(|f| f.sections.iter().copied().flatten()) {
        // SAFETY: a valid C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, function.name.as_ptr()) };
        // Comparing with our address is not enough: in a shared library that, too, is what the
        // dynamic linker says.
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

/// Where the object is loaded that an address belongs to; null for none.
fn object_of(address: *const c_void) -> *mut c_void {
    // SAFETY: all zeros is a valid `Dl_info`; dladdr takes any address.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(address, &mut info);
        info.dli_fbase
    }
}
