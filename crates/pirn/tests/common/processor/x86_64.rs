//! x86-64.

use std::arch::asm;
use std::ptr;

use libc::{c_int, c_long, c_void};

/// Makes a system call that only the kernel sees.
pub fn inline(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize) -> isize {
    let result;
    // SAFETY: the callers pass what the call takes.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") 0,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

/// Executes an undefined instruction.
pub fn undefined() {
    // SAFETY: the callers have a handler that calls `skip_undefined`.
    unsafe { asm!("ud2") };
}

/// Has a handler go on behind an undefined instruction.
///
/// # Safety
/// `context` is the third argument of the handler, which an undefined instruction has called.
pub unsafe fn skip_undefined(context: *mut c_void) {
    // SAFETY: the caller's contract. The instruction has two bytes.
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] += 2 };
}

/// A program can have itself single-stepped.
pub const HAS_STEP_FLAG: bool = true;

/// The versions of `struct stat` that `__xstat` and its kin know.
pub const STAT_VERSIONS: &[c_int] = &[0, 1];

/// A program can set the base of GS.
pub const HAS_SEGMENTS: bool = true;

/// Sets or clears the trap flag.
#[inline(always)]
pub fn set_step_flag(on: bool) {
    // SAFETY: changes the trap flag only, which only causes signals; `asm` takes a push and a pop
    // into account.
    unsafe {
        match on {
            true => asm!("pushfq", "or dword ptr [rsp], 0x100", "popfq"),
            false => asm!("pushfq", "and dword ptr [rsp], 0xfffffeff", "popfq"),
        }
    }
}

/// A `va_list` of arguments that are not in registers.
#[repr(C)]
pub struct Arguments {
    gp_offset: u32,
    fp_offset: u32,
    overflow: *const c_void,
    registers: *const c_void,
}

impl Arguments {
    pub fn of(arguments: *const c_void) -> Arguments {
        Arguments {
            gp_offset: 48, // none in registers
            fp_offset: 176,
            overflow: arguments,
            registers: ptr::null(),
        }
    }

    /// Returns what a function with such a parameter takes.
    pub fn list(&mut self) -> *mut c_void {
        ptr::from_mut(self).cast()
    }
}

/// Copies by instructions that can be interrupted between two bytes, upwards and downwards.
pub fn in_many_steps(number: u64) {
    let from = [number as u8; 5000];
    let mut to = [0u8; 5000];
    let last = from.len() - 1;
    // SAFETY: both arrays are copied whole, upwards and then downwards.
    unsafe {
        asm!("rep movsb", inout("rcx") from.len() => _,
            inout("rsi") from.as_ptr() => _, inout("rdi") to.as_mut_ptr() => _);
        assert_eq!(from, to);
        to.fill(0);
        asm!("std", "rep movsb", "cld", inout("rcx") from.len() => _,
            inout("rsi") from.as_ptr().add(last) => _,
            inout("rdi") to.as_mut_ptr().add(last) => _);
    }
    assert_eq!(from, to);
}
