//! Preparations for interposed functions: before the program's own code runs, and when the runtime
//! starts.

use crate::families::FAMILIES;
use crate::process::{credentials, dlfcn};
use crate::registry::{Interposed, Need};
use crate::signals::{self, handler};
use crate::sync::{self, semaphore};
use core::ffi::{CStr, c_int, c_void};
use pirn_rt::{sanitizer, sys};

/// The C library calls this before `main`, among the initialisers of the program.
#[used]
#[unsafe(link_section = ".init_array")]
static PREPARE: extern "C" fn() = prepare;

/// Looks up those functions behind ours that cannot wait for their first use. Runs again when the
/// runtime starts: a reference to this file keeps it in the program.
extern "C" fn prepare() {
    sanitizer::seal_keys();
    semaphore::prepare();
    handler::prepare();
    signals::prepare();
}

/// Performs the last step of the runtime's start. There are carriers, but no virtual threads yet.
pub fn started() {
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
/// name without a definition cannot be called, and a linker may leave it out (it exports the names
/// that its own C library has).
///
/// # Errors
/// Returns the name that is bound to another definition, and the possible reason.
pub fn verify() -> Result<(), String> {
    let own = object_of(verify as *const c_void).dli_fbase;
    let families = FAMILIES.iter().filter(|f| f.need == Need::Correctness);
    for function in families.flat_map(|f| f.sections.iter().copied().flatten()) {
        // SAFETY: a valid C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, function.name.as_ptr()) };
        if found.is_null() {
            continue;
        }
        let definition = definition(found, function);
        if own.is_null() || object_of(definition).dli_fbase != own {
            return Err(bound_elsewhere(function.name, definition));
        }
    }
    sync::check_layout()
}

fn bound_elsewhere(name: &CStr, definition: *mut c_void) -> String {
    let path = object_of(definition).dli_fname;
    let place = match path.is_null() {
        true => "somewhere else".into(),
        // SAFETY: a C string that lives as long as the object, which defines a function in use.
        false => format!("in {}", unsafe { CStr::from_ptr(path) }.to_string_lossy()),
    };
    format!(
        "the function `{}` is bound to a definition {place}, not to pirn's: does the program define \
         it itself, is pirn part of a library that was loaded at run time, or is another library \
         interposed (LD_PRELOAD)?",
        name.to_string_lossy()
    )
}

/// Returns the definition that calls by a name reach; `found` is its address.
///
/// In a program that is not position-independent and that takes the address of a function, that
/// address is an entry of the program's own jump table, for all libraries too. It leads to the
/// first definition behind the program.
fn definition(found: *mut c_void, function: &Interposed) -> *mut c_void {
    if !is_jump(found) {
        return found;
    }
    let (next, name) = (libc::RTLD_NEXT as usize, function.name.as_ptr() as usize);
    // The caller decides what is next: here it is the program.
    // SAFETY: the arguments of dlsym.
    unsafe {
        dlfcn::call_from(
            found.addr(),
            libc::dlsym as *const () as usize,
            [next, name, 0],
        )
    }
}

/// Returns whether an address is an entry of a jump table that stands for a function defined
/// elsewhere: a symbol that is not defined, and yet has a value.
fn is_jump(address: *mut c_void) -> bool {
    const RTLD_DL_SYMENT: c_int = 1;
    let mut symbol = core::ptr::null_mut();
    // SAFETY: all zeros is a valid `Dl_info`; dladdr1 takes any address, and returns an entry of a
    // loaded object's table.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        let found = libc::dladdr1(address, &mut info, &mut symbol, RTLD_DL_SYMENT);
        let symbol = symbol.cast::<libc::Elf64_Sym>();
        found != 0 && symbol.as_ref().is_some_and(|symbol| symbol.st_shndx == 0)
    }
}

/// Returns what the linker knows of the object that contains an address; nulls outside of all.
fn object_of(address: *const c_void) -> libc::Dl_info {
    // SAFETY: all zeros is a valid `Dl_info`; dladdr takes any address.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(address, &mut info);
        info
    }
}
