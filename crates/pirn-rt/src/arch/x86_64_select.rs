//! x86-64: functions of libc that are left to libc, but for few values of their first argument.

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
