//! What a reader of another process's stacks needs to know of the processor.
//!
//! Each processor has a file, which provides:
//!
//! | item | |
//! |---|---|
//! | `MACHINE` | the processor in the header of an ELF file |
//! | `REGISTERS` | bytes of the registers in a core file: `struct user_regs_struct` |
//! | `PC`, `SP`, `BP`, `LR` | the places there of program counter, stack pointer, frame pointer and link register |
//! | `SAVED_BP` | the name in `PIRN_DEBUG` of the frame pointer of a suspended thread |
//! | `INTERRUPTED` | the names there of the four registers of interrupted code |

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
