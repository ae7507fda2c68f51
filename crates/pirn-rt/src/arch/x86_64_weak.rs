//! Functions that may not be there: weak symbols, which stable Rust cannot declare.

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

/// Arguments of [`call_pair`].
#[repr(C)]
pub(crate) struct Pair {
    pub(crate) first: usize,
    pub(crate) second: usize,
    pub(crate) function: *const core::ffi::c_void,
}

/// Calls `function(first, second)`, without a frame of its own: a sanitizer does not instrument it.
///
/// # Safety
/// `pair` points to a [`Pair`] with a C function that may be called with these arguments.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn call_pair(pair: *mut u8) {
    core::arch::naked_asm!(
        "mov rax, [rdi + 16]",
        "mov rsi, [rdi + 8]",
        "mov rdi, [rdi]",
        "jmp rax",
    )
}
