//! Reading memory that may not be there.
//!
//! The kernel answers `EFAULT` where a program passes an address without memory behind it; what
//! stands in for a system call should, too. To ask the kernel first would cost a system call. So
//! the read is one instruction, the first of a function of its own, and if it faults the handler of
//! `SIGSEGV` and `SIGBUS` ([`recover`]) returns from that function in its place.

use core::arch::naked_asm;
use core::ffi::c_void;

/// What a fetch gives, in two registers.
#[repr(C)]
pub(crate) struct FetchedWord {
    pub(crate) value: u64,
    /// Not zero: there was nothing to read.
    pub(crate) failed: u64,
}

/// Reads eight bytes. An ordinary load in the eyes of the processor: what is read is not torn if
/// the address is aligned, and loads are in order.
///
/// # Safety
/// The runtime's handler of faults is in place.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn fetch_u64(address: usize) -> FetchedWord {
    naked_asm!("mov rax, [rdi]", "xor edx, edx", "ret")
}

/// As [`fetch_u64`], four bytes.
///
/// # Safety
/// As for `fetch_u64`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn fetch_u32(address: usize) -> FetchedWord {
    naked_asm!("mov eax, [rdi]", "xor edx, edx", "ret")
}

/// As [`fetch_u64`], one byte.
///
/// # Safety
/// As for `fetch_u64`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn fetch_u8(address: usize) -> FetchedWord {
    naked_asm!("movzx eax, byte ptr [rdi]", "xor edx, edx", "ret")
}

/// Lets a fetch that has faulted return that it has failed. Returns whether the fault was one.
///
/// # Safety
/// `context` is what the kernel gave the handler of a fault's signal.
pub(crate) unsafe fn recover(context: *mut c_void) -> bool {
    // SAFETY: the caller's contract.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let place = registers[libc::REG_RIP as usize] as usize;
    type Fetch = unsafe extern "C" fn(usize) -> FetchedWord;
    let fetches: [Fetch; 3] = [fetch_u64, fetch_u32, fetch_u8];
    if !fetches.iter().any(|fetch| *fetch as usize == place) {
        return false;
    }
    let stack = registers[libc::REG_RSP as usize];
    // SAFETY: the function has only just been entered, so the return address is on top.
    registers[libc::REG_RIP as usize] = unsafe { *(stack as *const i64) };
    registers[libc::REG_RSP as usize] = stack + 8;
    registers[libc::REG_RAX as usize] = 0;
    registers[libc::REG_RDX as usize] = 1;
    true
}
