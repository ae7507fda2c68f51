//! Where a thread is: the program counters of its stack, and what a person is told of them.

use core::ffi::{c_int, c_void};
use pirn_dump::{Frame, Module, Symbols};
use pirn_rt::glibc::objects;
use pirn_rt::no_suspend::NoSuspend;
use std::sync::Arc;

/// The return addresses on a thread's stack, innermost first. Empty: it was not recorded.
pub(crate) type Stack = Arc<[usize]>;

/// The most frames of a stack that are kept: of the simulator, of `std`, and of some callers.
const MOST: usize = 48;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        frame: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    safe fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// Returns the calling thread's stack.
pub(crate) fn here() -> Stack {
    extern "C" fn note(context: *mut c_void, all: *mut c_void) -> c_int {
        const GO_ON: c_int = 0; // _URC_NO_REASON
        const END: c_int = 4; // _URC_NORMAL_STOP
        // SAFETY: the vector of `here`, which no other code uses meanwhile.
        let all = unsafe { &mut *all.cast::<Vec<usize>>() };
        all.push(_Unwind_GetIP(context));
        if all.len() < MOST { GO_ON } else { END }
    }
    // The unwinder takes locks of C's: there must be no point in them.
    let _section = NoSuspend::new();
    let mut all = Vec::with_capacity(MOST);
    // SAFETY: `note` gets the vector, which outlives the call.
    unsafe { _Unwind_Backtrace(note, (&raw mut all).cast()) };
    all.into()
}

/// Finds names of functions and lines.
pub(crate) struct Names {
    modules: Vec<Module>,
    symbols: Symbols,
}

impl Names {
    /// Returns the names of what is loaded now.
    pub(crate) fn new() -> Names {
        let program = std::env::current_exe().unwrap_or_default();
        let mut modules = Vec::new();
        objects::find_in(|object| {
            let path = match object.name().to_bytes() {
                b"" => program.as_os_str().as_encoded_bytes(),
                path => path,
            };
            modules.extend(object.code().map(|(code, offset)| Module {
                path: path.to_vec(),
                build_id: object.build_id().unwrap_or_default().to_vec(),
                bias: object.base() as u64,
                start: code.start as u64,
                end: code.end as u64,
                offset,
            }));
            None::<()>
        });
        Names {
            modules,
            symbols: Symbols::of_self(),
        }
    }

    /// Describes where a thread is by the innermost function of the program, and the one of the
    /// library that it has called: `cache.rs:14 cache::Cache::get (Mutex::lock)`. Empty if that is
    /// not known.
    pub(crate) fn describe(&mut self, stack: &Stack) -> String {
        let mut called = None;
        for &address in stack.iter() {
            for frame in self.frames(address as u64) {
                if is_of_simulation(&frame) {
                    called = None;
                } else if is_of_library(&frame) {
                    called = Some(frame.name());
                } else {
                    let line = match (frame.file_name(), frame.line) {
                        (Some(file), Some(line)) => format!("{file}:{line} "),
                        _ => String::new(),
                    };
                    let name = frame.name();
                    return match called {
                        Some(called) => format!("{line}{name} ({called})"),
                        None => format!("{line}{name}"),
                    };
                }
            }
        }
        String::new()
    }

    /// Returns the calls at a return address, innermost first.
    fn frames(&mut self, address: u64) -> Vec<Frame> {
        let call = address.saturating_sub(1); // A return address is behind the call.
        let of_it = |it: &&Module| (it.start..it.end).contains(&call);
        match self.modules.iter().find(of_it) {
            Some(module) => self.symbols.frames(module, call.wrapping_sub(module.bias)),
            None => Vec::new(),
        }
    }
}

/// Whether a function is Pirn's: what is below it is how the point came about.
fn is_of_simulation(frame: &Frame) -> bool {
    let name = frame.name();
    let file = frame.file.as_deref().unwrap_or_default();
    frame.is_of_runtime() || file.contains("pirn-sim/src/") || name.starts_with("__tsan_")
}

/// Whether a function is the standard library's, or C's.
fn is_of_library(frame: &Frame) -> bool {
    const PARTS: [&str; 3] = ["/library/std/", "/library/core/", "/library/alloc/"];
    match frame.file.as_deref() {
        Some(file) => file.starts_with("/rustc/") || PARTS.iter().any(|part| file.contains(part)),
        None => true,
    }
}
