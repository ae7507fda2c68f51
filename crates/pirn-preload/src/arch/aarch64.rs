//! AArch64.
//!
//! The library finds its thread-locals by descriptors (TLSDESC). When the dynamic linker loads the
//! library with the program, it writes the distance from the thread pointer into each descriptor:
//! no access locks or allocates, and nothing is to be defined here. (glibc's
//! `sysdeps/aarch64/dl-machine.h`: descriptors are resolved as the library is loaded.)

/// Defines functions of these names, hidden from other libraries. Each jumps to the address at its
/// index in `found`, with its arguments and the stack as its caller has left them. If that is null,
/// it calls `look_up` with its index, and jumps to the result.
macro_rules! define {
    ($found:ident, $look_up:ident: $($index:literal $name:ident)*) => {
        $(
            // `ldar` acquires: the function reads data that the thread which has found it may have
            // relocated. That the jump depends on the address does not order those loads.
            core::arch::global_asm!(
                concat!(".globl ", stringify!($name)),
                concat!(".hidden ", stringify!($name)),
                concat!(".type ", stringify!($name), ",%function"),
                concat!(stringify!($name), ":"),
                concat!("adrp x16, {found} + 8 * ", $index),
                concat!("add x16, x16, :lo12:{found} + 8 * ", $index),
                "ldar x16, [x16]",
                "cbz x16, 2f",
                "br x16",
                concat!("2: mov w16, #", $index),
                "b {find}",
                found = sym $found,
                find = sym find,
            );
        )*

        /// Looks up the function with the number in `w16`, and goes on there.
        ///
        /// # Safety
        /// Jumped to from the functions above only, which have at most four arguments.
        #[unsafe(naked)]
        unsafe extern "C" fn find() {
            core::arch::naked_asm!(
                "stp x29, x30, [sp, #-48]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]",
                "stp x2, x3, [sp, #32]",
                "mov w0, w16",
                "bl {look_up}",
                "mov x16, x0",
                "ldp x0, x1, [sp, #16]",
                "ldp x2, x3, [sp, #32]",
                "ldp x29, x30, [sp], #48",
                "br x16",
                look_up = sym $look_up,
            )
        }
    };
}
pub(crate) use define;
