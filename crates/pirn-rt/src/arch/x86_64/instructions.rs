//! x86-64: single instructions: the system call, fences, the counter, and accesses to memory that
//! may not be there.
//!
//! The kernel answers `EFAULT` if a program passes an address without memory behind it, and a
//! function that stands in for a system call should do so too. To ask the kernel first would cost a
//! system call. So the access is one instruction, the first of a function of its own. If it faults,
//! the handler of `SIGSEGV` and `SIGBUS` ([`recover`]) returns from that function in its place.

use core::arch::x86_64::{__cpuid, _MM_HINT_T0, _mm_prefetch, _rdtsc};
use core::arch::{asm, naked_asm};
use core::ffi::c_void;
use core::sync::atomic::{Ordering, compiler_fence};

/// One system call, straight to the kernel: returns its value, or `-errno`.
///
/// # Safety
/// As for the system call itself.
#[inline(always)]
pub unsafe fn syscall(number: libc::c_long, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the Linux x86-64 syscall ABI clobbers rcx and r11 only; the caller answers for what
    // the call does to memory.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Where the addresses of programs end (four levels of page tables).
pub const END_OF_PROGRAM: usize = 1 << 47;

/// Bytes of a page: there is no other base page size.
pub(crate) const PAGE_SIZE: Option<usize> = Some(4096);

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Makes the processor prefetch this many cache lines from an address on. Lines without memory are
/// left out.
#[inline(always)]
pub(crate) fn prefetch(address: usize, lines: usize) {
    for line in 0..lines {
        let address = address.wrapping_add(line * LINE);
        // SAFETY: a prefetch of any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::without_provenance(address)) };
    }
}

/// A full memory fence, like `fence(SeqCst)`: no later load passes an earlier store. A locked
/// instruction on the stack takes a third of `mfence`'s time (Linux does the same: `smp_mb`,
/// arch/x86/include/asm/barrier.h).
#[inline(always)]
pub(crate) fn full_fence() {
    // SAFETY: changes nothing, in the red zone of our own frame. Not `nomem`, so that the
    // compiler moves no memory access across it.
    unsafe { asm!("lock or dword ptr [rsp - 8], 0", options(nostack)) };
}

/// A full memory fence for code that has just made an atomic read-modify-write, whatever its
/// ordering: no later load passes that, nor any earlier store. Here such an instruction is locked,
/// and a fence by itself; only the compiler must be told (Linux: `smp_mb__after_atomic`).
#[inline(always)]
pub(crate) fn fence_after_atomic() {
    compiler_fence(Ordering::SeqCst);
}

/// Returns the stack pointer of the calling code, or a little less.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}

/// Returns the counter: some 8 ns, and no system call. It does not wait for the instructions
/// before it.
#[inline(always)]
pub(crate) fn counter() -> u64 {
    // SAFETY: programs may read it, unless they have forbidden it themselves (`PR_SET_TSC`).
    unsafe { _rdtsc() }
}

/// Returns whether the counter runs at one rate, whatever the processor's frequency, and in sleep.
/// Linux keeps the counters of all cores together, or says otherwise at the start.
pub(crate) fn has_steady_counter() -> bool {
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    let highest = __cpuid(0x8000_0000).eax;
    highest >= POWER && __cpuid(POWER).edx & INVARIANT != 0
}

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

/// Reads four bytes, as [`fetch_u64`] reads eight.
///
/// # Safety
/// As for `fetch_u64`.
#[unsafe(naked)]
pub unsafe extern "C" fn fetch_u32(address: usize) -> FetchedWord {
    naked_asm!("mov eax, [rdi]", "xor edx, edx", "ret")
}

/// Reads one byte, as [`fetch_u64`] reads eight.
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

/// If a fetch or store has caused the fault, makes it return that it has failed. Returns whether
/// one has.
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
