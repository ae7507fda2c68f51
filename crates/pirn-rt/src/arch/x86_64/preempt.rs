//! x86-64: taking a thread off its processor in the middle of its code.
//!
//! The handler of a signal makes the interrupted code call [`trampoline`] as soon as the handler
//! has returned ([`Interruption::inject`]). So nothing of the signal is left when the thread is
//! switched away from: neither the frame nor the alternative stack, and the kernel's own return
//! from the handler happens on the carrier that it began on.
//!
//! ```text
//!   |  frames of the interrupted code           |
//!   |  red zone, 128 bytes                      |  <- its stack pointer was above this
//!   |  address of the interrupted instruction   |  <- stack pointer when the trampoline begins
//!   |  flags, 15 registers                      |
//!   |  vector and x87 registers, as XSAVE does  |  <- aligned to 64
//! ```
//!
//! The interrupted code did not expect a call, so the trampoline saves every register that a thread
//! can see. Not saved: AMX tiles (8 KiB; a thread that uses them is left alone) and the rights of
//! protection keys, which belong to the carrier (a thread that has changed them is left alone).
//! The x87 stack and the upper halves of the vector registers are empty when the next thread runs.

use super::registers::has_keys;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::arch::{asm, naked_asm};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bytes below the stack pointer that code may use without moving it.
pub const RED_ZONE: usize = 128;
/// Components of the extended state, by their bits: 256-bit registers, protection keys, AMX.
const AVX: u64 = 1 << 2;
const KEYS: u64 = 1 << 9;
const TILES: u64 = 3 << 17;
/// Bytes of the part of a saved state that every processor has, header included.
const LEGACY: usize = 512 + 64;

// Written once by `learn`, before the first injection; so relaxed.
/// The components that the trampoline saves.
static COMPONENTS: AtomicU64 = AtomicU64::new(0);
/// Bytes that they take.
static SIZE: AtomicUsize = AtomicUsize::new(0);
/// Whether the processor has `xsavec`, which leaves out components that are not in use.
static COMPACT: AtomicU8 = AtomicU8::new(0);
/// Whether the processor tells which components are in use.
static TELLS_USE: AtomicU8 = AtomicU8::new(0);
/// The rights of protection keys when the runtime started, if there are keys.
static RIGHTS: AtomicU32 = AtomicU32::new(0);
/// The function that the trampoline calls: a [`Body`].
static BODY: AtomicUsize = AtomicUsize::new(0);

/// A function that the trampoline calls. The interrupted code goes on with the registers that the
/// function leaves.
pub(crate) type Body = unsafe extern "C-unwind" fn(&mut SavedRegisters);

/// Learns how to save the state of this processor, and makes the trampoline call `body`.
///
/// # Errors
/// The reason why threads cannot be interrupted here.
pub(crate) fn learn(body: Body) -> Result<(), &'static str> {
    const OSXSAVE: u32 = 1 << 27;
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return Err("the processor or the system has no XSAVE");
    }
    if has_shadow_stack() {
        return Err("the process has a shadow stack");
    }
    const XSAVEC: u32 = 1 << 1;
    const XGETBV_1: u32 = 1 << 2;
    let features = __cpuid_count(0xd, 1).eax;
    let compact = features & XSAVEC != 0;
    // SAFETY: the system has enabled XSAVE.
    let enabled = unsafe { xgetbv(0) };
    let components = enabled & !(KEYS | TILES);
    if enabled & TILES != 0 && features & XGETBV_1 == 0 {
        return Err("the processor has AMX and does not tell whether it is in use");
    }
    COMPONENTS.store(components, Relaxed);
    SIZE.store(size_of_state(components, compact), Relaxed);
    COMPACT.store(compact.into(), Relaxed);
    TELLS_USE.store((features & XGETBV_1 != 0).into(), Relaxed);
    if has_keys() {
        // SAFETY: the system has enabled protection keys.
        RIGHTS.store(unsafe { rights() }, Relaxed);
    }
    BODY.store(body as usize, Relaxed);
    Ok(())
}

/// Returns the number of bytes in which these components are saved.
fn size_of_state(components: u64, compact: bool) -> usize {
    const ALIGNED: u32 = 1 << 1;
    let extended = (2..63).filter(|i| components & (1 << i) != 0);
    extended.fold(LEGACY, |end, i| {
        let leaf = __cpuid_count(0xd, i);
        let (size, offset) = (leaf.eax as usize, leaf.ebx as usize);
        match compact {
            true if leaf.ecx & ALIGNED != 0 => end.next_multiple_of(64) + size,
            true => end + size,
            false => end.max(offset + size),
        }
    })
}

/// Returns whether the kernel keeps a second copy of return addresses, with which the trampoline's
/// return would not agree.
fn has_shadow_stack() -> bool {
    const ARCH_SHSTK_STATUS: usize = 0x5005;
    const SHSTK: u64 = 1;
    let mut status = 0u64;
    let pointer = &raw mut status as usize;
    let args = [ARCH_SHSTK_STATUS, pointer, 0, 0, 0, 0];
    // SAFETY: the kernel writes one word, or knows no such request.
    unsafe { super::syscall(libc::SYS_arch_prctl, args) == 0 && status & SHSTK != 0 }
}

/// # Safety
/// The system has enabled XSAVE, and the processor has this register.
unsafe fn xgetbv(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller's contract; reads a register.
    unsafe {
        asm!("xgetbv", in("ecx") register, out("eax") low, out("edx") high,
            options(nostack, nomem, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Returns the rights of the protection keys.
///
/// # Safety
/// The system has enabled protection keys.
pub(super) unsafe fn rights() -> u32 {
    let rights: u32;
    // SAFETY: the caller's contract; reads a register.
    unsafe {
        asm!("rdpkru", in("ecx") 0, out("eax") rights, out("edx") _,
            options(nostack, nomem, preserves_flags));
    }
    rights
}

/// Returns whether the running code has state that the trampoline does not save. For the
/// trampoline's body.
pub(crate) fn has_unsaved_state() -> bool {
    // SAFETY: as `learn` has found out.
    unsafe {
        TELLS_USE.load(Relaxed) != 0 && xgetbv(1) & TILES != 0
            || has_keys() && rights() != RIGHTS.load(Relaxed)
    }
}

/// Returns the number of bytes of stack that [`trampoline`] uses, without its body.
pub(crate) fn trampoline_bytes() -> usize {
    RED_ZONE + 18 * 8 + 64 + SIZE.load(Relaxed)
}

/// What a signal has interrupted: its handler's third argument.
pub struct Interruption<'a>(&'a mut libc::ucontext_t);

impl Interruption<'_> {
    /// Returns what the handler that runs has interrupted.
    ///
    /// # Safety
    /// `context` is the third argument of the running handler, which ends before the result is
    /// used any more.
    pub unsafe fn new(context: *mut c_void) -> Self {
        // SAFETY: the caller's contract.
        Interruption(unsafe { &mut *context.cast() })
    }

    /// Returns the interrupted code's frame pointer, if it has one.
    #[cfg(feature = "dump")]
    pub(crate) fn bp(&self) -> usize {
        self.register(libc::REG_RBP)
    }

    /// Returns 0: return addresses are on the stack.
    #[cfg(feature = "dump")]
    pub(crate) fn lr(&self) -> usize {
        0
    }

    fn register(&self, index: i32) -> usize {
        self.0.uc_mcontext.gregs[index as usize] as usize
    }

    /// Returns the address of the interrupted instruction.
    pub(crate) fn pc(&self) -> usize {
        self.register(libc::REG_RIP)
    }

    /// Returns the interrupted code's stack pointer.
    pub fn sp(&self) -> usize {
        self.register(libc::REG_RSP)
    }

    /// Returns whether the interrupted code traps after each instruction, or at unaligned accesses:
    /// so would the trampoline.
    pub(crate) fn cannot_call(&self) -> bool {
        const TRAP: usize = 1 << 8;
        const ALIGNMENT_CHECK: usize = 1 << 18;
        self.register(libc::REG_EFL) & (TRAP | ALIGNMENT_CHECK) != 0
    }

    /// Returns the signals that the interrupted code blocks: bit `n - 1` for signal `n`.
    pub fn blocked(&self) -> u64 {
        // SAFETY: the kernel writes the first eight bytes of the set.
        unsafe { (&raw const self.0.uc_sigmask).cast::<u64>().read() }
    }

    /// Makes the interrupted code go on with these signals blocked.
    pub fn block_only(&mut self, signals: u64) {
        // SAFETY: as in `blocked`.
        unsafe { (&raw mut self.0.uc_sigmask).cast::<u64>().write(signals) };
    }

    /// Makes the interrupted code call the body given to [`learn`] before it goes on.
    ///
    /// # Safety
    /// There are [`trampoline_bytes`] and what the body needs below the stack pointer.
    pub(crate) unsafe fn inject(&mut self) {
        let place = self.sp() - RED_ZONE - size_of::<usize>();
        // SAFETY: the caller's contract.
        unsafe { (place as *mut usize).write(self.pc()) };
        let registers = &mut self.0.uc_mcontext.gregs;
        registers[libc::REG_RSP as usize] = place as i64;
        registers[libc::REG_RIP as usize] = trampoline as *const () as i64;
    }
}

/// Where readers of a stack find the registers of interrupted code: the unwind information of
/// [`trampoline`] says it.
pub const INTERRUPTED: [(&str, usize); 0] = [];

/// The registers of interrupted code, as [`trampoline`] has pushed them: the last first.
#[repr(C)]
pub struct SavedRegisters([i64; 17]);

impl SavedRegisters {
    /// Which registers they are, as a `ucontext_t` numbers them. The stack pointer is not among
    /// them.
    const ORDER: [i32; 17] = [
        libc::REG_R15,
        libc::REG_R14,
        libc::REG_R13,
        libc::REG_R12,
        libc::REG_R11,
        libc::REG_R10,
        libc::REG_R9,
        libc::REG_R8,
        libc::REG_RDI,
        libc::REG_RSI,
        libc::REG_RDX,
        libc::REG_RCX,
        libc::REG_RBX,
        libc::REG_RAX,
        libc::REG_RBP,
        libc::REG_EFL,
        libc::REG_RIP,
    ];

    /// Returns the address of the instruction before which the code was interrupted.
    pub fn pc(&self) -> usize {
        self.0[Self::ORDER.len() - 1] as usize
    }

    /// Writes the registers to a context, as the kernel does to the context of a handler.
    pub fn show(&self, context: &mut libc::ucontext_t) {
        let registers = &mut context.uc_mcontext.gregs;
        for (value, index) in self.0.iter().zip(Self::ORDER) {
            registers[index as usize] = *value;
        }
        let sp = (&raw const *self).addr() + size_of::<Self>() + RED_ZONE;
        registers[libc::REG_RSP as usize] = sp as i64;
    }

    /// Takes over what a handler has changed in the context, except the stack pointer.
    pub fn change(&mut self, context: &libc::ucontext_t) {
        for (value, index) in self.0.iter_mut().zip(Self::ORDER) {
            *value = context.uc_mcontext.gregs[index as usize];
        }
    }
}

/// Gives the running code the floating point environment with which the kernel calls handlers.
pub fn begin_float() {
    const MXCSR: u32 = 0x1f80;
    // SAFETY: the default environment, in which compiled code runs.
    unsafe { asm!("fninit", "ldmxcsr [{}]", in(reg) &MXCSR, options(nostack)) };
}

/// Gives the running code the floating point environment that a context has, as `setcontext` does.
///
/// # Safety
/// `getcontext` has filled it in.
pub unsafe fn end_float(context: &libc::ucontext_t) {
    // SAFETY: the caller's contract. It has the form of `fnstenv`, but for the last word.
    unsafe {
        let saved = context.uc_mcontext.fpregs;
        asm!("fldenv [{0}]", "ldmxcsr [{0} + 24]", in(reg) saved, options(nostack, readonly));
    }
}

/// Saves all registers, calls the body, and goes on where the code was interrupted. Its unwind
/// information says so: backtraces show the interrupted frame.
#[unsafe(naked)]
unsafe extern "C" fn trampoline() {
    naked_asm!(
        ".cfi_startproc; .cfi_signal_frame",
        ".cfi_def_cfa rsp, 136; .cfi_offset rip, -136", // as the interrupted code's `rsp` says
        "pushfq; .cfi_adjust_cfa_offset 8",
        "push rbp; .cfi_adjust_cfa_offset 8; .cfi_offset rbp, -152",
        "mov rbp, rsp; .cfi_def_cfa_register rbp",
        "cld",
        "push rax; push rbx; push rcx; push rdx; push rsi; push rdi",
        "push r8; push r9; push r10; push r11; push r12; push r13; push r14; push r15",
        ".cfi_offset rbx, -168; .cfi_offset r12, -240; .cfi_offset r13, -248",
        ".cfi_offset r14, -256; .cfi_offset r15, -264",
        "sub rsp, [rip + {size}]",
        "and rsp, -64",
        // The instructions leave parts of the header as they are; they must be zero.
        "xor eax, eax",
        "mov [rsp + 512], rax; mov [rsp + 520], rax; mov [rsp + 528], rax",
        "mov [rsp + 536], rax; mov [rsp + 544], rax; mov [rsp + 552], rax",
        "mov [rsp + 560], rax; mov [rsp + 568], rax",
        "mov eax, [rip + {components}]",
        "mov edx, [rip + {components} + 4]",
        "cmp byte ptr [rip + {compact}], 0",
        "je 2f",
        "xsavec64 [rsp]",
        "jmp 3f",
        "2: xsave64 [rsp]",
        // The state that the calling convention promises the body, which shows the next thread
        // nothing of this one.
        "3: fninit",
        "test eax, {avx}",
        "jz 4f",
        "vzeroupper",
        "4: lea rdi, [rbp - 14 * 8]",
        "call [rip + {body}]",
        ".globl pirn_preempted; .hidden pirn_preempted",
        "pirn_preempted:",
        "mov eax, [rip + {components}]",
        "mov edx, [rip + {components} + 4]",
        "xrstor64 [rsp]",
        "lea rsp, [rbp - 14 * 8]",
        "pop r15; pop r14; pop r13; pop r12; pop r11; pop r10; pop r9; pop r8",
        "pop rdi; pop rsi; pop rdx; pop rcx; pop rbx; pop rax",
        "pop rbp; .cfi_def_cfa rsp, 144",
        "popfq; .cfi_adjust_cfa_offset -8",
        "ret {red_zone}; .cfi_endproc",
        size = sym SIZE,
        components = sym COMPONENTS,
        compact = sym COMPACT,
        avx = const AVX,
        body = sym BODY,
        red_zone = const RED_ZONE,
    )
}
