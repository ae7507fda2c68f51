//! pthread
/// x
#[unsafe(no_mangle)]
pub extern "C" fn pthread_setspecific(_k: u32, _v: *const core::ffi::c_void) -> i32 { unsafe { crate::glibc::symbols::real!(fn pthread_setspecific(_k: u32, _v: *const core::ffi::c_void) -> i32)} }
