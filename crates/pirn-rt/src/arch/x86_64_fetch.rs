//! Reading and writing memory that may not be there.
//!
//! The kernel answers `EFAULT` where a program passes an address without memory behind it; what
//! stands in for a system call should, too. To ask the kernel first would cost a system call. So
//! the access is one instruction, the first of a function of its own, and if it faults the handler
//! of `SIGSEGV` and `SIGBUS` ([`recover`]) returns from that function in its place.

use core::arch::naked_asm;
use core::ffi::c_void;

/// What a fetch or a store gives, in two registers.
#[repr(C)]
pub struct FetchedWord {
    pub value: u64,
    /// Not zero: there was nothing to read, or nothing that could be written.
    pub failed: u64,
}

/// Reads eight bytes. An ordinary load in the eyes of the processor: what is read is not torn if
/// the address is aligned, and loads are in order.
///
/// # Safety
/// The runtime's handler of faults is in place.
#[unsafe(naked)]
pub unsafe extern "C" fn fetch_u64(address: usize) -> FetchedWord {
    naked_asm!("mov rax, [rdi]", "xor edx, edx", "ret")
}

/// As [`fetch_u64`], four bytes.
///
/// # Safety
/// As for `fetch_u64`.
#[unsafe(naked)]
pub unsafe extern "C" fn fetch_u32(address: usize) -> FetchedWord {
    naked_asm!("mov eax, [rdi]", "xor edx, edx", "ret")
}

/// As [`fetch_u64`], one byte.
///
/// # Safety
/// As for `fetch_u64`.
#[unsafe(naked)]
pub unsafe extern "C" fn fetch_u8(address: usize) -> FetchedWord {
    naked_asm!("movzx eax, byte ptr [rdi]", "xor edx, edx", "ret")
}

/// Writes eight bytes. The `value` of the result has no meaning.
///
/// # Safety
/// As for [`fetch_u64`]; the memory there, if there is any, may be written.
#[unsafe(naked)]
pub unsafe extern "C" fn store_u64(address: usize, value: u64) -> FetchedWord {
    naked_asm!("mov [rdi], rsi", "xor edx, edx", "ret")
}

/// Lets a fetch or store that has faulted return that it has failed. Returns whether the fault was
/// one.
///
/// # Safety
/// `context` is what the kernel gave the handler of a fault's signal.
pub unsafe fn recover(context: *mut c_void) -> bool {
    // SAFETY: the caller's contract.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let place = registers[libc::REG_RIP as usize] as usize;
    let accesses = [
        fetch_u64 as *const () as usize,
        fetch_u32 as *const () as usize,
        fetch_u8 as *const () as usize,
        store_u64 as *const () as usize,
    ];
    if !accesses.contains(&place) {
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
