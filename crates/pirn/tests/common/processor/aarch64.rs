//! AArch64.

use std::arch::asm;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use libc::{c_int, c_long, c_void};

/// Makes a system call that only the kernel sees.
pub fn inline(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize) -> isize {
    let result;
    // SAFETY: the callers pass what the call takes.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") 0,
        );
    }
    result
}

/// Executes an undefined instruction.
pub fn undefined() {
    // SAFETY: the callers have a handler that calls `skip_undefined`.
    unsafe { asm!("udf #0") };
}

/// Has a handler go on behind an undefined instruction.
///
/// # Safety
/// `context` is the third argument of the handler, which an undefined instruction has called.
pub unsafe fn skip_undefined(context: *mut c_void) {
    // SAFETY: the caller's contract.
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.pc += 4 };
}

/// The kernel lets only a tracer set `PSTATE.SS`.
pub const HAS_STEP_FLAG: bool = false;

/// The versions of `struct stat` that `__xstat` and its kin know.
pub const STAT_VERSIONS: &[c_int] = &[0];

/// A thread has no register of this kind but the thread pointer.
pub const HAS_SEGMENTS: bool = false;

/// Does nothing.
pub fn set_step_flag(_: bool) {}

/// A `va_list` of arguments that are not in registers (AAPCS64, "Variable argument lists").
#[repr(C)]
pub struct Arguments {
    stack: *const c_void,
    general_top: *const c_void,
    vector_top: *const c_void,
    general: i32,
    vector: i32,
}

impl Arguments {
    pub fn of(arguments: *const c_void) -> Arguments {
        Arguments {
            stack: arguments,
            general_top: ptr::null(),
            vector_top: ptr::null(),
            general: 0, // none in registers
            vector: 0,
        }
    }

    /// Returns what a function with such a parameter takes.
    pub fn list(&mut self) -> *mut c_void {
        ptr::from_mut(self).cast()
    }
}

/// Adds by a pair of instructions, the second of which must fail where another thread has run in
/// between.
pub fn in_many_steps(_: u64) {
    static SUM: AtomicU64 = AtomicU64::new(0);
    static EXPECTED: AtomicU64 = AtomicU64::new(0);
    const ROUNDS: u64 = 1000;
    for _ in 0..ROUNDS {
        // SAFETY: an atomic addition to a static.
        unsafe {
            asm!("2: ldaxr {old}, [{sum}]", "add {old}, {old}, #1", "stlxr {failed:w}, {old}, [{sum}]",
                "cbnz {failed:w}, 2b",
                old = out(reg) _, failed = out(reg) _, sum = in(reg) SUM.as_ptr());
        }
    }
    // Each thread adds to what is expected when it has added to the sum.
    let expected = EXPECTED.fetch_add(ROUNDS, SeqCst) + ROUNDS;
    assert!(SUM.load(SeqCst) >= expected);
}
