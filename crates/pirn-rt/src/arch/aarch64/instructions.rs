//! AArch64: single instructions: the system call, fences, the counter, and accesses to memory that
//! may not be there.
//!
//! The kernel answers `EFAULT` if a program passes an address without memory behind it, and a
//! function that stands in for a system call should do so too. To ask the kernel first would cost a
//! system call. So the access is one instruction, the first of a function of its own. If it faults,
//! the handler of `SIGSEGV` and `SIGBUS` ([`recover`]) returns from that function in its place.

use core::arch::{asm, naked_asm};
use core::ffi::c_void;

/// One system call, straight to the kernel: returns its value, or `-errno`.
///
/// # Safety
/// As for the system call itself.
#[inline(always)]
pub unsafe fn syscall(number: libc::c_long, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel keeps all registers but x0; the caller answers for what the call does to
    // memory.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") args[0] => result,
            in("x1") args[1],
            in("x2") args[2],
            in("x3") args[3],
            in("x4") args[4],
            in("x5") args[5],
            options(nostack),
        );
    }
    result
}

/// Where the addresses of programs end (without LVA).
pub const END_OF_PROGRAM: usize = 1 << 48;

/// Bytes of a page: the kernel's choice, 4, 16 or 64 KiB.
pub(crate) const PAGE_SIZE: Option<usize> = None;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Makes the processor prefetch this many cache lines from an address on. Lines without memory are
/// left out.
#[inline(always)]
pub(crate) fn prefetch(address: usize, lines: usize) {
    for line in 0..lines {
        let address = address.wrapping_add(line * LINE);
        // SAFETY: a prefetch of any address is allowed.
        unsafe {
            asm!("prfm pldl1keep, [{}]", in(reg) address,
                options(nostack, preserves_flags, readonly));
        }
    }
}

/// A full memory fence, like `fence(SeqCst)`: no later load passes an earlier store.
#[inline(always)]
pub(crate) fn full_fence() {
    // SAFETY: a barrier. Not `nomem`, so that the compiler moves no memory access across it.
    unsafe { asm!("dmb ish", options(nostack, preserves_flags)) };
}

/// A full memory fence for code that has just made an atomic read-modify-write, whatever its
/// ordering: no later load passes that, nor any earlier store. Here such an instruction orders
/// nothing by itself.
#[inline(always)]
pub(crate) fn fence_after_atomic() {
    full_fence();
}

/// Returns the stack pointer of the calling code, or a little less.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}

/// Returns the counter, without a system call. It does not wait for the instructions before it. Its
/// rate is 24 MHz to 1 GHz.
#[inline(always)]
pub(crate) fn counter() -> u64 {
    let value: u64;
    // SAFETY: programs may read it.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) value, options(nostack, nomem, preserves_flags)) };
    value
}

/// Returns whether the counter runs at one rate, whatever the processor's frequency, and in sleep.
/// The architecture says so (DDI 0487, D12.1.2).
pub(crate) fn has_steady_counter() -> bool {
    true
}

/// What a fetch or a store gives, in two registers.
#[repr(C)]
pub struct FetchedWord {
    pub value: u64,
    /// Not zero: there was nothing to read, or nothing that could be written.
    pub failed: u64,
}

/// Reads eight bytes. An ordinary load in the eyes of the processor: what is read is not torn if
/// the address is aligned. Nothing orders it with other accesses.
///
/// # Safety
/// The runtime's handler of faults is in place.
#[unsafe(naked)]
pub unsafe extern "C" fn fetch_u64(address: usize) -> FetchedWord {
    naked_asm!("ldr x0, [x0]", "mov x1, xzr", "ret")
}

/// Reads four bytes, as [`fetch_u64`] reads eight.
///
/// # Safety
/// As for `fetch_u64`.
#[unsafe(naked)]
pub unsafe extern "C" fn fetch_u32(address: usize) -> FetchedWord {
    naked_asm!("ldr w0, [x0]", "mov x1, xzr", "ret")
}

/// Reads one byte, as [`fetch_u64`] reads eight.
///
/// # Safety
/// As for `fetch_u64`.
#[unsafe(naked)]
pub unsafe extern "C" fn fetch_u8(address: usize) -> FetchedWord {
    naked_asm!("ldrb w0, [x0]", "mov x1, xzr", "ret")
}

/// Writes eight bytes. The `value` of the result has no meaning.
///
/// # Safety
/// As for [`fetch_u64`]; the memory there, if there is any, may be written.
#[unsafe(naked)]
pub unsafe extern "C" fn store_u64(address: usize, value: u64) -> FetchedWord {
    naked_asm!("str x1, [x0]", "mov x1, xzr", "ret")
}

/// If a fetch or store has caused the fault, makes it return that it has failed. Returns whether
/// one has.
///
/// # Safety
/// `context` is what the kernel gave the handler of a fault's signal.
pub unsafe fn recover(context: *mut c_void) -> bool {
    // SAFETY: the caller's contract.
    let machine = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext };
    let accesses = [
        fetch_u64 as *const () as usize,
        fetch_u32 as *const () as usize,
        fetch_u8 as *const () as usize,
        store_u64 as *const () as usize,
    ];
    if !accesses.contains(&(machine.pc as usize)) {
        return false;
    }
    // The function has only just been entered: x30 is the return address.
    machine.pc = machine.regs[30];
    machine.regs[0] = 0;
    machine.regs[1] = 1;
    true
}
