//! x86-64: definitions of C functions that a Rust function cannot be, and of some that may be
//! absent.
//!
//! Four macros define a function that hands its arguments on. [`weak`] finds one that the program
//! may lack, since stable Rust has no weak symbols. [`forward_variadic`] does for a function with
//! any number of arguments what a C compiler does (`va_start`; System V ABI, section 3.5.7):
//!
//! ```text
//!   rsp + 224  arguments on the stack
//!   rsp + 216  return address
//!   rsp +  32  register save area: 6 integer registers, 8 vector registers
//!   rsp        va_list: gp_offset, fp_offset, overflow_arg_area, reg_save_area
//! ```

/// Defines the C function `$name`, another name of `$target`.
#[macro_export]
#[doc(hidden)]
macro_rules! forward_to {
    ($(#[$attribute:meta])* $name:ident => $target:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!("jmp {}", sym $target)
        }
    };
}
pub use forward_to;

/// Defines the C function `$name`, of up to three arguments, which calls `$note` with them and goes
/// on at the address that `$note` returns, with the same arguments and return address, as if the
/// caller had called that. `setjmp` and its kin, which return to the frame of their caller twice,
/// cannot be called in another way.
///
/// With `when`, as long as the static `$when`, a word, is 0, the function goes on at libc's
/// function of that name, in the version of the first glibc on this processor, and no compiled code
/// runs before. AddressSanitizer looks things up before its shadow memory exists, and whatever it
/// has instrumented would fault.
#[macro_export]
#[doc(hidden)]
macro_rules! forward {
    ($(#[$attribute:meta])* $name:ident => $note:path) => {
        $crate::arch::forward!(@ [$(#[$attribute])*] $name, ["call {note}"], [], note = sym $note);
    };
    ($(#[$attribute:meta])* $name:ident(when $when:path) => $note:path) => {
        $crate::arch::forward!(@ [$(#[$attribute])*] $name,
            [
                "cmp qword ptr [rip + {when}], 0",
                "je 2f",
                "call {note}",
                "jmp 3f",
                "2: mov rdi, -1", // RTLD_NEXT
                "lea rsi, [rip + 4f]",
                "lea rdx, [rip + 5f]",
                "call {dlvsym}",
                "3:"
            ],
            [
                concat!("4: .asciz \"", stringify!($name), "\""),
                "5: .asciz \"GLIBC_2.2.5\""
            ],
            when = sym $when, note = sym $note, dlvsym = sym libc::dlvsym
        );
    };
    (@ [$($attribute:tt)*] $name:ident, [$($find:expr),*], [$($data:expr),*], $($operands:tt)*) => {
        $($attribute)*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi; .cfi_adjust_cfa_offset 8",
                "push rsi; .cfi_adjust_cfa_offset 8",
                "push rdx; .cfi_adjust_cfa_offset 8", // rsp is a multiple of 16 again
                $($find,)*
                "pop rdx; .cfi_adjust_cfa_offset -8",
                "pop rsi; .cfi_adjust_cfa_offset -8",
                "pop rdi; .cfi_adjust_cfa_offset -8",
                "jmp rax; .cfi_endproc",
                $($data,)*
                $($operands)*
            )
        }
    };
}
pub use forward;

/// Defines the C function `$name`, which goes on to the function whose address is in the static
/// `$libcs` if its first argument, an unsigned number of 32 bits, is below `$limit`, and else to
/// `$ours`: three instructions, one of which is the jump.
#[macro_export]
#[doc(hidden)]
macro_rules! forward_below {
    ($(#[$attribute:meta])* $name:ident(below $limit:literal) => $libcs:path, else $ours:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                concat!("cmp edi, ", $limit),
                "jae 2f",
                "jmp [rip + {libcs}]",
                "2:",
                "jmp {ours}",
                libcs = sym $libcs,
                ours = sym $ours,
            )
        }
    };
}
pub use forward_below;

/// Defines the C function `$name(key)`. For the key in the static `$special` it goes on to the
/// function whose address is in the static `$libcs`, or returns 0 if that is null; else to `$ours`.
/// It has no frame: a sanitizer that instruments this crate asks for its key at the start of
/// instrumented functions.
#[macro_export]
#[doc(hidden)]
macro_rules! forward_key {
    ($(#[$attribute:meta])* $name:ident(key $special:path) => $libcs:path, else $ours:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(_: libc::pthread_key_t) -> *mut core::ffi::c_void {
            core::arch::naked_asm!(
                "cmp edi, [rip + {special}]",
                "jne {ours}",
                "mov rax, [rip + {libcs}]",
                "test rax, rax",
                "jz 2f",
                "jmp rax",
                "2:",
                "ret",
                special = sym $special,
                libcs = sym $libcs,
                ours = sym $ours,
            )
        }
    };
}
pub use forward_key;

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

/// Returns the function of this name and type, or `None` if no object of the program defines it.
///
/// The name must belong to a function of that type: the expansion contains the `unsafe` blocks.
#[macro_export]
#[doc(hidden)]
macro_rules! weak {
    ($name:literal as $function:ty) => {{
        let address: usize;
        // SAFETY: reads the symbol's entry in the global offset table, where the dynamic linker has
        // put its address, or null.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {}, [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(nostack, preserves_flags, pure, readonly),
            )
        };
        // SAFETY: the function of this name, of the type that its header declares.
        unsafe { core::mem::transmute::<usize, Option<$function>>(address) }
    }};
}
pub use weak;
