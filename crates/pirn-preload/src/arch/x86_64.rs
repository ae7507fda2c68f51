//! x86-64.

mod thread_locals;

/// Defines functions of these names, hidden from other libraries. Each jumps to the address at its
/// index in `found`, with its arguments and the stack as its caller has left them. If that is null,
/// it calls `look_up` with its index, and jumps to the result.
macro_rules! define {
    ($found:ident, $look_up:ident: $($index:literal $name:ident)*) => {
        $(
            // `rax` has no argument of any of them. On this processor each load acquires.
            core::arch::global_asm!(
                concat!(".globl ", stringify!($name)),
                concat!(".hidden ", stringify!($name)),
                concat!(".type ", stringify!($name), ",@function"),
                concat!(stringify!($name), ":"),
                concat!("mov rax, [rip + {found} + 8 * ", $index, "]"),
                "test rax, rax",
                "je 2f",
                "jmp rax",
                concat!("2: mov eax, ", $index),
                "jmp {find}",
                found = sym $found,
                find = sym find,
            );
        )*

        /// Looks up the function with the number in `eax`, and goes on there.
        ///
        /// # Safety
        /// Jumped to from the functions above only.
        #[unsafe(naked)]
        unsafe extern "C" fn find() {
            core::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8", // rsp is a multiple of 16 again
                "mov edi, eax",
                "call {look_up}",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp rax",
                look_up = sym $look_up,
            )
        }
    };
}
pub(crate) use define;
