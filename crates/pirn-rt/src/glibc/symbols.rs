//! Symbols found by `dlsym`: glibc's private ones, and the libc functions that our definitions
//! shadow.
//!
//! `dlsym` takes the dynamic linker's lock, which a thread holds while the constructors of a
//! library run that it loads. A constructor may start threads (numpy's OpenBLAS has one), and with
//! them the runtime, whose other threads must not wait for that lock. So the thread that starts the
//! runtime looks up all of them: it may have the lock, which is recursive.

use core::arch::global_asm;
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

/// Looks up each [`real!`] and [`find!`], before the runtime has other threads, which may ask for
/// them.
pub(crate) fn prepare() {
    // The user of a symbol reports that libc lacks it.
    reals().iter().for_each(|real| _ = real.get());
    super::thread::prepare_dlerror();
    crate::time::now(); // The first reading looks up libc's function.
    // Some C libraries lack some of these symbols. The program is not at fault.
    // SAFETY: no arguments.
    unsafe { libc::dlerror() };
}

/// Looks up a private symbol (`GLIBC_PRIVATE`, or a data symbol made for debuggers).
pub(super) fn look_up(name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: a valid C string; RTLD_DEFAULT searches the loaded objects.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    found(name, address)
}

/// Returns the address of a symbol, unless it is null.
fn found(name: &CStr, address: *mut c_void) -> Result<*mut c_void, String> {
    if address.is_null() {
        return Err(format!(
            "this C library has no symbol `{}`: pirn needs glibc 2.34 or later, dynamically linked",
            name.to_string_lossy()
        ));
    }
    Ok(address)
}

/// Returns a symbol of the C library itself, even if a preloaded library defines it, too.
pub fn find_in_libc(name: &'static CStr) -> Result<*mut c_void, String> {
    // SAFETY: valid C strings; the library is loaded, and stays so.
    let address = unsafe {
        let loaded = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        let library = libc::dlopen(c"libc.so.6".as_ptr(), loaded);
        match library.is_null() {
            true => library,
            false => libc::dlsym(library, name.as_ptr()),
        }
    };
    match address.is_null() {
        true => look_up(name),
        false => Ok(address),
    }
}

/// Returns the offset of a field of a glibc structure, from its description for libthread_db: size
/// in bits, number of elements, offset in bytes (`nptl_db/db_info.c`, `DESC`).
///
/// # Safety
/// There is such a description at the address.
pub(crate) unsafe fn field_offset(description: *mut c_void) -> usize {
    // SAFETY: the caller's contract: three 32-bit words.
    unsafe { description.cast::<[u32; 3]>().read()[2] as usize }
}

/// A symbol of libc that is private, or that one of our interposed definitions shadows: looked up
/// behind ours (`RTLD_NEXT`) at its first use, or by [`prepare`].
pub struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Real {
    /// Returns the next definition of `name` after this program's own.
    pub const fn new(name: &'static CStr) -> Real {
        Real {
            name,
            address: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Returns its address, or null if this libc does not have it.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        // Relaxed: code addresses need no ordering, and a second lookup gives the same answer.
        let known = self.address.load(Ordering::Relaxed);
        if known.is_null() {
            self.look_up()
        } else {
            known
        }
    }

    /// Returns its address.
    ///
    /// # Errors
    /// This libc does not have it.
    pub fn find(&self) -> Result<*mut c_void, String> {
        found(self.name, self.get())
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        let renewed = super::layout::RENEWED
            .iter()
            .find(|(name, _)| *name == self.name);
        // SAFETY: valid C strings.
        let found = unsafe {
            match renewed {
                Some((name, version)) => {
                    libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr())
                }
                None => libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()),
            }
        };
        // Relaxed: as in `get`.
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

// Hidden: a library in the same process may have a section of this name.
global_asm!(
    ".weak __start_pirn_reals; .hidden __start_pirn_reals",
    ".weak __stop_pirn_reals; .hidden __stop_pirn_reals",
);

unsafe extern "C" {
    /// The bounds of the section with the symbols of all [`real!`] and [`find!`]: the linker's.
    #[link_name = "__start_pirn_reals"]
    static REALS: [usize; 0];
    #[link_name = "__stop_pirn_reals"]
    static REALS_END: [usize; 0];
}

/// Returns the symbols of all [`real!`] and [`find!`] in this program. They are `#[used]`: LLVM
/// would leave only the address of one whose name it has found to be constant.
fn reals() -> &'static [Real] {
    let (start, end) = (&raw const REALS, &raw const REALS_END);
    // SAFETY: only these two put anything into the section, and nothing but this type.
    unsafe {
        let count = end.byte_offset_from_unsigned(start) / size_of::<Real>();
        core::slice::from_raw_parts(start.cast(), count)
    }
}

/// Calls the libc function that an interposed definition shadows: `real!(fn name(arg: Type, …) ->
/// Ret)`. The call is an `unsafe` operation. Evaluates to the function's own result; ends the
/// process if libc lacks the function.
///
/// `real!(unwinding fn …)` is for functions that may not return because their thread is cancelled:
/// glibc then unwinds the stack, so they must be called from an `extern "C-unwind"` function.
#[macro_export]
macro_rules! real {
    (fn $($signature:tt)*) => {
        $crate::glibc::symbols::real!(@ "C", $($signature)*)
    };
    (unwinding fn $($signature:tt)*) => {
        $crate::glibc::symbols::real!(@ "C-unwind", $($signature)*)
    };
    (@ $abi:literal, $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty) => {{
        #[used]
        #[unsafe(link_section = "pirn_reals")]
        static REAL: $crate::glibc::symbols::Real = $crate::glibc::symbols::Real::new(
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!(),
            },
        );
        let address = REAL.get();
        if address.is_null() {
            $crate::sys::fatal(&["the C library has no `", stringify!($name), "`"]);
        }
        type Function = unsafe extern $abi fn($($ty),*) -> $ret;
        core::mem::transmute::<*mut core::ffi::c_void, Function>(address)($($arg),*)
    }};
}
pub use real;

/// Finds a private symbol of libc (`GLIBC_PRIVATE`, or a data symbol made for debuggers):
/// `find!(c"name")`. Evaluates to a `Result` with its address, or a text that it is missing.
#[macro_export]
macro_rules! find {
    ($name:literal) => {{
        #[used]
        #[unsafe(link_section = "pirn_reals")]
        static SYMBOL: $crate::glibc::symbols::Real = $crate::glibc::symbols::Real::new($name);
        SYMBOL.find()
    }};
}
pub use find;
