//! Virtual threads for a C program.

use std::ffi::{c_uint, c_void};

#[derive(Clone, Copy)]
struct Argument(*mut c_void);
// SAFETY: the C program answers for what its threads do with it.
unsafe impl Send for Argument {}

/// Calls `function(argument, i)` on `count` virtual threads, and waits until all have returned.
///
/// # Safety
/// `function` may be called by several threads at once with this argument.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn on_virtual_threads(
    count: c_uint,
    function: unsafe extern "C" fn(*mut c_void, c_uint),
    argument: *mut c_void,
) {
    let argument = Argument(argument);
    let spawn = |i| {
        pirn::thread::spawn(move || {
            let Argument(argument) = { argument };
            // SAFETY: the caller's contract.
            unsafe { function(argument, i) }
        })
    };
    let threads: Vec<_> = (0..count).map(spawn).collect();
    for thread in threads {
        thread.join().expect("C does not panic");
    }
}
