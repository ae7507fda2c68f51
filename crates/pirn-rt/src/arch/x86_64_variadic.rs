//! x86-64: functions that C declares with any number of arguments.
//!
//! Rust cannot define them, so these few instructions do what a C compiler does for `va_start`
//! (System V ABI, section 3.5.7), and call the variant that takes a `va_list`:
//!
//! ```text
//!   rsp + 224  arguments on the stack
//!   rsp + 216  return address
//!   rsp +  32  register save area: 6 integer registers, 8 vector registers
//!   rsp        va_list: gp_offset, fp_offset, overflow_arg_area, reg_save_area
//! ```

/// Defines the variadic C function `$name` with that many named arguments, which calls `$target`
/// with the named ones and a `va_list` of the others.
#[macro_export]
#[doc(hidden)]
macro_rules! forward_variadic {
    ($(#[$attribute:meta])* $name:ident(1 named) => $target:path) => {
        $crate::arch::forward_variadic!(@ [$(#[$attribute])*] $name, "8", "rsi", $target);
    };
    ($(#[$attribute:meta])* $name:ident(2 named) => $target:path) => {
        $crate::arch::forward_variadic!(@ [$(#[$attribute])*] $name, "16", "rdx", $target);
    };
    ($(#[$attribute:meta])* $name:ident(3 named) => $target:path) => {
        $crate::arch::forward_variadic!(@ [$(#[$attribute])*] $name, "24", "rcx", $target);
    };
    (@ [$($attribute:tt)*] $name:ident, $gp_offset:literal, $list:literal, $target:path) => {
        $($attribute)*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 216", // rsp is a multiple of 16 again
                ".cfi_adjust_cfa_offset 216",
                "mov [rsp + 32], rdi",
                "mov [rsp + 40], rsi",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "test al, al", // how many vector registers have arguments, at most
                "je 2f",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                "2:",
                concat!("mov dword ptr [rsp], ", $gp_offset), // past the named arguments
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                concat!("mov ", $list, ", rsp"),
                "call {target}",
                "add rsp, 216",
                ".cfi_adjust_cfa_offset -216",
                "ret",
                ".cfi_endproc",
                target = sym $target,
            )
        }
    };
}
pub use forward_variadic;

/// A `va_list`, as the instructions above and C compilers lay it out.
#[repr(C)]
pub struct VaList {
    /// How far in `saved` the next argument is; from [`REGISTERS`](Self::REGISTERS) on, on the
    /// stack.
    gp_offset: u32,
    fp_offset: u32,
    on_stack: *const usize,
    saved: *const u8,
}

impl VaList {
    /// Bytes of the integer registers that have arguments.
    const REGISTERS: u32 = 48;

    /// Returns the next argument, which is an integer or a pointer.
    ///
    /// # Safety
    /// There is one, and the call that it belongs to has not returned.
    pub unsafe fn next(&mut self) -> usize {
        // SAFETY: the caller's contract: the next register that was saved, or word on the stack.
        unsafe {
            if self.gp_offset < VaList::REGISTERS {
                let register = self.saved.add(self.gp_offset as usize).cast::<usize>();
                self.gp_offset += 8;
                return register.read();
            }
            let word = self.on_stack.read();
            self.on_stack = self.on_stack.add(1);
            word
        }
    }
}
