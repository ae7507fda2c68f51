//! AArch64: definitions of C functions that a Rust function cannot be, and of some that may be
//! absent.
//!
//! Four macros define a function that hands its arguments on. [`weak`] finds one that the program
//! may lack, since stable Rust has no weak symbols. [`forward_variadic`] does for a function with
//! any number of arguments what a C compiler does (`va_start`; AAPCS64, appendix B):
//!
//! ```text
//!   sp + 240  arguments on the stack
//!   sp + 176  8 integer registers, which end where `gr_top` points
//!   sp +  48  8 vector registers, which end where `vr_top` points
//!   sp +  16  va_list: stack, gr_top, vr_top, gr_offs, vr_offs
//!   sp        x29, x30
//! ```
//!
//! Each begins with `hint #34` (`bti c`): an indirect call may lead here. It hands on by a branch,
//! which reaches 128 MiB in either direction, or through `x16`.

/// Defines the C function `$name`, another name of `$target`.
#[macro_export]
#[doc(hidden)]
macro_rules! forward_to {
    ($(#[$attribute:meta])* $name:ident => $target:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!("hint #34", "b {}", sym $target)
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
        $crate::arch::forward!(@ [$(#[$attribute])*] $name, ["bl {note}"], [], note = sym $note);
    };
    ($(#[$attribute:meta])* $name:ident(when $when:path) => $note:path) => {
        $crate::arch::forward!(@ [$(#[$attribute])*] $name,
            [
                "adrp x16, {when}",
                "ldr x16, [x16, :lo12:{when}]",
                "cbz x16, 2f",
                "bl {note}",
                "b 3f",
                "2: mov x0, #-1", // RTLD_NEXT
                "adr x1, 4f",
                "adr x2, 5f",
                "bl {dlvsym}",
                "3:"
            ],
            [
                concat!("4: .asciz \"", stringify!($name), "\""),
                "5: .asciz \"GLIBC_2.17\"",
                ".balign 4"
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
                "hint #34",
                "stp x29, x30, [sp, #-48]!; .cfi_def_cfa_offset 48",
                ".cfi_offset x29, -48; .cfi_offset x30, -40",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "str x2, [sp, #32]",
                $($find,)*
                "mov x16, x0",
                "ldr x2, [sp, #32]",
                "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #48; .cfi_def_cfa_offset 0",
                ".cfi_restore x29; .cfi_restore x30",
                "br x16",
                ".cfi_endproc",
                $($data,)*
                $($operands)*
            )
        }
    };
}
pub use forward;

/// Defines the C function `$name`, which goes on to the function whose address is in the static
/// `$libcs` if its first argument, an unsigned number of 32 bits, is below `$limit`, and else to
/// `$ours`.
#[macro_export]
#[doc(hidden)]
macro_rules! forward_below {
    ($(#[$attribute:meta])* $name:ident(below $limit:literal) => $libcs:path, else $ours:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "hint #34",
                concat!("cmp w0, #", $limit),
                "b.hs 2f",
                "adrp x16, {libcs}",
                "ldr x16, [x16, :lo12:{libcs}]",
                "br x16",
                "2:",
                "b {ours}",
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
                "hint #34",
                "adrp x16, {special}",
                "ldr w16, [x16, :lo12:{special}]",
                "cmp w0, w16",
                "b.ne 3f",
                "adrp x16, {libcs}",
                "ldr x16, [x16, :lo12:{libcs}]",
                "cbz x16, 2f",
                "br x16",
                "2:",
                "mov x0, xzr",
                "ret",
                "3:",
                "b {ours}",
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
        $crate::arch::forward_variadic!(@ [$(#[$attribute])*] $name, "-56", "x1", $target);
    };
    ($(#[$attribute:meta])* $name:ident(2 named) => $target:path) => {
        $crate::arch::forward_variadic!(@ [$(#[$attribute])*] $name, "-48", "x2", $target);
    };
    ($(#[$attribute:meta])* $name:ident(3 named) => $target:path) => {
        $crate::arch::forward_variadic!(@ [$(#[$attribute])*] $name, "-40", "x3", $target);
    };
    (@ [$($attribute:tt)*] $name:ident, $offset:literal, $list:literal, $target:path) => {
        $($attribute)*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "hint #34",
                "stp x29, x30, [sp, #-240]!; .cfi_def_cfa_offset 240",
                ".cfi_offset x29, -240; .cfi_offset x30, -232",
                "mov x29, sp",
                "stp q0, q1, [sp, #48]",
                "stp q2, q3, [sp, #80]",
                "stp q4, q5, [sp, #112]",
                "stp q6, q7, [sp, #144]",
                "stp x0, x1, [sp, #176]",
                "stp x2, x3, [sp, #192]",
                "stp x4, x5, [sp, #208]",
                "stp x6, x7, [sp, #224]",
                "add x9, sp, #240",
                "stp x9, x9, [sp, #16]", // stack, gr_top
                "add x9, sp, #176",
                "str x9, [sp, #32]", // vr_top
                concat!("mov w9, #", $offset), // past the named arguments
                "mov w10, #-128",
                "stp w9, w10, [sp, #40]", // gr_offs, vr_offs
                concat!("add ", $list, ", sp, #16"),
                "bl {target}",
                "ldp x29, x30, [sp], #240; .cfi_def_cfa_offset 0",
                ".cfi_restore x29; .cfi_restore x30",
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
    on_stack: *const usize,
    /// The ends of the saved integer registers, and of the vector registers.
    gr_top: *const u8,
    vr_top: *const u8,
    /// Where the next argument is from `gr_top` on, below 0; else, on the stack.
    gr_offs: i32,
    vr_offs: i32,
}

impl VaList {
    /// Returns the next argument, which is an integer or a pointer.
    ///
    /// # Safety
    /// There is one, and the call that it belongs to has not returned.
    pub unsafe fn next(&mut self) -> usize {
        // SAFETY: the caller's contract: the next register that was saved, or word on the stack.
        unsafe {
            if self.gr_offs < 0 {
                let register = self.gr_top.offset(self.gr_offs as isize).cast::<usize>();
                self.gr_offs += 8;
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
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(nostack, preserves_flags, pure, readonly),
            )
        };
        // SAFETY: the function of this name, of the type that its header declares.
        unsafe { core::mem::transmute::<usize, Option<$function>>(address) }
    }};
}
pub use weak;
