//! The library finds its own thread-locals by the thread pointer.
//!
//! A shared object finds its thread-locals by `__tls_get_addr`. glibc's takes the dynamic linker's
//! lock in some of the calls that follow the opening of a library, and allocates memory. But the
//! runtime locks the linker on virtual threads, and reads its thread-locals to do so: these calls
//! called each other until the stack was full. And it reads them in signal handlers.
//!
//! glibc puts the data of a library that is loaded with the program at a fixed distance from each
//! thread pointer. So calls of this library go here:
//!
//! ```text
//!   address = thread pointer + distance (negative) + offset of the variable
//! ```
//!
//! The first call takes the distance from its thread's table of modules, the dtv. In an entry for
//! such a library the second word is null: glibc has nothing to free. If the library was opened by
//! the program, each call goes to glibc's function.

use core::arch::global_asm;
use core::sync::atomic::AtomicIsize;

/// The distance from the thread pointer to this library's data; 0: not known.
static DISTANCE: AtomicIsize = AtomicIsize::new(0);

// Hidden: the linker binds this library's calls to it, and no other library sees it. Its callers
// have not aligned the stack; it does not use it, and glibc's function aligns it.
global_asm!(
    ".symver glibc_tls_get_addr, __tls_get_addr@GLIBC_2.3",
    ".globl __tls_get_addr",
    ".hidden __tls_get_addr",
    ".type __tls_get_addr, @function",
    "__tls_get_addr:", // rdi: two words, the number of the module and the offset
    ".cfi_startproc",
    "mov rax, [rip + {distance}]",
    "test rax, rax",
    "je 2f",
    "add rax, fs:[0]",
    "add rax, [rdi + 8]",
    "ret",
    "2:",
    "mov rcx, [rdi]",
    "shl rcx, 4",
    "add rcx, fs:[8]",
    "mov rax, [rcx]",
    "cmp rax, -1", // glibc allocates at the first use
    "je 3f",
    "cmp qword ptr [rcx + 8], 0",
    "jne 3f",
    "mov rcx, rax",
    "sub rcx, fs:[0]",
    "mov [rip + {distance}], rcx", // all threads that get here store the same
    "add rax, [rdi + 8]",
    "ret",
    "3:",
    "jmp [rip + glibc_tls_get_addr@GOTPCREL]",
    ".cfi_endproc",
    ".size __tls_get_addr, . - __tls_get_addr",
    distance = sym DISTANCE,
);
