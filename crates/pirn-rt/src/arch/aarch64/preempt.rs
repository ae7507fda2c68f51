//! AArch64: taking a thread off its processor in the middle of its code.
//!
//! The handler of a signal makes the interrupted code call [`trampoline`] as soon as the handler
//! has returned ([`Interruption::inject`]). So nothing of the signal is left when the thread is
//! switched away from, and the kernel's own return from the handler happens on the carrier that it
//! began on.
//!
//! Interrupted code may use all 31 registers, and no instruction jumps to an address in memory, so
//! the trampoline cannot return by itself. The kernel does it: the handler copies the kernel's
//! whole frame to the interrupted stack, and the trampoline ends with `rt_sigreturn`, on whichever
//! carrier it is then. So the kernel restores all that it has saved: vectors of any length (SVE),
//! matrices (SME), and what processors will have.
//!
//! ```text
//!   |  frames of the interrupted code         |  <- its stack pointer; there is no red zone
//!   |  extra records of the kernel's, if any  |
//!   |  ucontext_t: registers, vectors         |
//!   |  siginfo_t, 128 bytes                   |  <- stack pointer when the trampoline begins
//! ```
//!
//! Source: `arch/arm64/kernel/signal.c`, `arch/arm64/include/uapi/asm/sigcontext.h`.

use core::arch::naked_asm;
use core::ffi::c_void;
use core::mem::offset_of;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes below the stack pointer that code may use without moving it.
pub const RED_ZONE: usize = 0;
/// Bytes of the kernel's frame before the context.
const INFORMATION: usize = 128;
/// Records of a context: the vector registers that all processors have; where more records are.
const FPSIMD: u32 = 0x4650_8001;
const EXTRA: u32 = 0x4558_5401;

// Written once by `learn`, before the first injection; so relaxed.
/// The function that the trampoline calls: a [`Body`].
static BODY: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the kernel's largest frame.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// A function that the trampoline calls. The interrupted code goes on with the registers that the
/// function leaves.
pub(crate) type Body = unsafe extern "C-unwind" fn(&mut SavedRegisters);

/// Makes the trampoline call `body`.
///
/// # Errors
/// The reason why threads cannot be interrupted here.
pub(crate) fn learn(body: Body) -> Result<(), &'static str> {
    if has_shadow_stack() {
        return Err("the process has a shadow stack");
    }
    /// Of kernels that do not tell (before Linux 4.20).
    const PLAIN: usize = 5120;
    // SAFETY: getauxval has no preconditions.
    let told = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    LARGEST.store(told.max(PLAIN), Relaxed);
    BODY.store(body as usize, Relaxed);
    Ok(())
}

/// Returns whether the kernel keeps a second copy of return addresses (GCS), with which the frame's
/// return would not agree.
fn has_shadow_stack() -> bool {
    const PR_GET_SHADOW_STACK_STATUS: usize = 74;
    const ENABLE: u64 = 1;
    let mut status = 0u64;
    let args = [
        PR_GET_SHADOW_STACK_STATUS,
        &raw mut status as usize,
        0,
        0,
        0,
        0,
    ];
    // SAFETY: the kernel writes one word, or knows no such request.
    unsafe { super::syscall(libc::SYS_prctl, args) == 0 && status & ENABLE != 0 }
}

/// Returns whether the running code has state that the trampoline does not save. For the
/// trampoline's body.
pub(crate) fn has_unsaved_state() -> bool {
    false // The kernel has saved all of it.
}

/// Returns the number of bytes of stack that [`trampoline`] uses, without its body.
pub(crate) fn trampoline_bytes() -> usize {
    LARGEST.load(Relaxed) + 16 + 32
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
        self.0.uc_mcontext.regs[29] as usize
    }

    /// Returns the register in which a function is told where to return to, until it uses it for
    /// something else.
    #[cfg(feature = "dump")]
    pub(crate) fn lr(&self) -> usize {
        self.0.uc_mcontext.regs[30] as usize
    }

    /// Returns the address of the interrupted instruction.
    pub(crate) fn pc(&self) -> usize {
        self.0.uc_mcontext.pc as usize
    }

    /// Returns the interrupted code's stack pointer.
    pub fn sp(&self) -> usize {
        self.0.uc_mcontext.sp as usize
    }

    /// Returns whether the interrupted code traps after each instruction, as the trampoline would;
    /// or is the trampoline's own end, which must not come to another carrier.
    pub(crate) fn cannot_call(&self) -> bool {
        const SOFTWARE_STEP: u64 = 1 << 21;
        let end = (&raw const END_BEGINS).addr()..(&raw const END_ENDS).addr();
        self.0.uc_mcontext.pstate & SOFTWARE_STEP != 0 || end.contains(&self.pc())
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
        const BRANCH_TYPE: u64 = 3 << 10;
        // SAFETY: the kernel's frame, which begins before the context; the caller vouches for the
        // place of the copy. The records end with one of size 0.
        unsafe {
            let context: *mut libc::ucontext_t = &raw mut *self.0;
            let frame = context.cast::<u8>().sub(INFORMATION);
            let records = Records::of(context);
            let extra = records.clone().find(|record| (**record).magic == EXTRA);
            let end = match extra.map(|record| record.cast::<ExtraRecord>()) {
                Some(extra) => {
                    ((*extra).data as usize + (*extra).bytes as usize).max(context.add(1).addr())
                }
                None => context.add(1).addr(),
            };
            let bytes = (end - frame.addr()).next_multiple_of(16);
            let copy = (self.sp() - bytes & !15) as *mut u8;
            copy.copy_from_nonoverlapping(frame, bytes);
            let copied = &mut *copy.add(INFORMATION).cast::<libc::ucontext_t>();
            if let Some(extra) = extra {
                // An absolute address.
                let place = copy.add(extra.addr() - frame.addr()).cast::<ExtraRecord>();
                (*place).data = (*place).data - frame.addr() as u64 + copy.addr() as u64;
            }
            // What no alternative stack has: the kernel leaves the carrier's as it is.
            copied.uc_stack.ss_flags = i32::MAX;
            let machine = &mut self.0.uc_mcontext;
            machine.sp = copy.addr() as u64;
            machine.pc = trampoline as *const () as u64;
            machine.pstate &= !BRANCH_TYPE;
            // Of vectors, the trampoline gets the registers that all processors have.
            for record in records {
                if (*record).magic == FPSIMD {
                    *record.byte_add((*record).size as usize) = Record { magic: 0, size: 0 };
                    break;
                }
            }
        }
    }
}

/// The head of a record in a context (`struct _aarch64_ctx`).
#[repr(C)]
struct Record {
    magic: u32,
    size: u32,
}

/// `struct extra_context`.
#[repr(C)]
struct ExtraRecord {
    head: Record,
    data: u64,
    bytes: u32,
    reserved: [u32; 3],
}

/// The records of a context, up to the one that ends them.
#[derive(Clone)]
struct Records(*mut Record);

impl Records {
    /// # Safety
    /// The kernel or `getcontext` has filled in the context, which lasts as long as the result.
    unsafe fn of(context: *mut libc::ucontext_t) -> Records {
        // SAFETY: the caller's contract.
        Records(
            unsafe { &raw mut (*context).uc_mcontext }
                .cast::<u8>()
                .wrapping_add(RESERVED)
                .cast(),
        )
    }
}

/// Where the records of a `mcontext_t` begin: after the address of a fault, 31 registers, the stack
/// pointer, the program counter and the flags, at a multiple of 16.
const RESERVED: usize = (8 * (1 + 31 + 3usize)).next_multiple_of(16);
const _: () = assert!(size_of::<libc::mcontext_t>() == RESERVED + 4096);

impl Iterator for Records {
    type Item = *mut Record;

    fn next(&mut self) -> Option<*mut Record> {
        let record = self.0;
        // SAFETY: inside the context, as `of` was told.
        let Record { magic, size } = unsafe { record.read() };
        self.0 = record.wrapping_byte_add(size as usize);
        (magic != 0 && size != 0).then_some(record)
    }
}

/// Where readers of a stack find the registers of interrupted code, from the stack pointer on with
/// which [`trampoline`] has called its body.
pub const INTERRUPTED: [(&str, usize); 4] = {
    const MACHINE: usize = INFORMATION + offset_of!(libc::ucontext_t, uc_mcontext);
    const REGISTERS: usize = MACHINE + offset_of!(libc::mcontext_t, regs);
    [
        ("interrupted.pc", MACHINE + offset_of!(libc::mcontext_t, pc)),
        ("interrupted.sp", MACHINE + offset_of!(libc::mcontext_t, sp)),
        ("interrupted.x29", REGISTERS + 29 * 8),
        ("interrupted.x30", REGISTERS + 30 * 8),
    ]
};

/// The registers of interrupted code: the context in the copy of the kernel's frame.
#[repr(transparent)]
pub struct SavedRegisters(libc::ucontext_t);

impl SavedRegisters {
    /// Returns the address of the instruction before which the code was interrupted.
    pub fn pc(&self) -> usize {
        self.0.uc_mcontext.pc as usize
    }

    /// Writes the registers to a context, as the kernel does to the context of a handler.
    pub fn show(&self, context: &mut libc::ucontext_t) {
        let (own, shown) = (&self.0.uc_mcontext, &mut context.uc_mcontext);
        (shown.regs, shown.sp) = (own.regs, own.sp);
        (shown.pc, shown.pstate) = (own.pc, own.pstate);
    }

    /// Takes over what a handler has changed in the context, except the stack pointer.
    pub fn change(&mut self, context: &libc::ucontext_t) {
        let (own, shown) = (&mut self.0.uc_mcontext, &context.uc_mcontext);
        own.regs = shown.regs;
        (own.pc, own.pstate) = (shown.pc, shown.pstate);
    }
}

/// Gives the running code the floating point environment with which the kernel calls handlers: the
/// one of the interrupted code.
pub fn begin_float() {}

/// Gives the running code the floating point environment that a context has, as `setcontext` does.
///
/// # Safety
/// `getcontext` has filled it in.
pub unsafe fn end_float(context: &libc::ucontext_t) {
    // SAFETY: the caller's contract. FPSR and FPCR follow the head of the record.
    unsafe {
        let context = (&raw const *context).cast_mut();
        if let Some(record) = Records::of(context).find(|record| (**record).magic == FPSIMD) {
            let [status, controls] = *record.add(1).cast::<[u32; 2]>();
            core::arch::asm!(
                "msr fpsr, {}", "msr fpcr, {}",
                in(reg) u64::from(status), in(reg) u64::from(controls),
                options(nostack, nomem, preserves_flags),
            );
        }
    }
}

unsafe extern "C" {
    /// The part of [`trampoline`] that knows which signals its carrier blocks.
    #[link_name = "pirn_trampoline_knows"]
    static END_BEGINS: u8;
    #[link_name = "pirn_trampoline_ends"]
    static END_ENDS: u8;
}

/// Calls the body with the copied context, and has the kernel go on where the code was interrupted.
/// The kernel also sets the mask of signals that the context has: the body may have come to another
/// carrier, whose mask it has to stay. So the kernel is asked for that mask before.
///
/// The outer part, behind `3:`, has no unwind information: libgcc, libunwind and gdb know the two
/// instructions at the return address of its call, and take the registers from the frame at the
/// stack pointer.
#[unsafe(naked)]
unsafe extern "C" fn trampoline() {
    naked_asm!(
        "b 3f",
        "2:",
        ".cfi_startproc",
        "stp x29, x30, [sp, #-32]!; .cfi_def_cfa_offset 32",
        ".cfi_offset x29, -32; .cfi_offset x30, -24",
        "mov x29, sp",
        "str x0, [sp, #16]",
        "adrp x16, {body}",
        "ldr x16, [x16, :lo12:{body}]",
        "blr x16",
        "ldr x2, [sp, #16]",
        "add x2, x2, #{mask}",
        "mov x0, xzr", // with no set in x1, nothing is changed
        "mov x1, xzr",
        "mov x3, #8",
        "mov x8, #135", // rt_sigprocmask
        "svc #0",
        ".globl pirn_trampoline_knows; .hidden pirn_trampoline_knows",
        "pirn_trampoline_knows:",
        "ldp x29, x30, [sp], #32; .cfi_def_cfa_offset 0; .cfi_restore x29; .cfi_restore x30",
        "ret; .cfi_endproc",
        "3:",
        "add x0, sp, #{information}",
        "bl 2b",
        ".globl pirn_preempted; .hidden pirn_preempted",
        "pirn_preempted:",
        "mov x8, #139", // rt_sigreturn
        "svc #0",
        ".globl pirn_trampoline_ends; .hidden pirn_trampoline_ends",
        "pirn_trampoline_ends:",
        "udf #0",
        information = const INFORMATION,
        mask = const core::mem::offset_of!(libc::ucontext_t, uc_sigmask),
        body = sym BODY,
    )
}
