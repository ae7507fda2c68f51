//! The machine: registers, the thread pointer and system calls.
//!
//! No layer above this one contains an instruction. Each architecture has a folder:
//!
//! | file | provides |
//! |---|---|
//! | `switch` | [`switch()`], [`switch_slowly`], [`prepare`] |
//! | `registers` | the thread pointer: [`thread_pointer`], [`call_with_tp`], [`has_tp_instruction`]; what few programs change of a thread: `FloatControls`, `Extra` |
//! | `instructions` | [`syscall`], [`full_fence`], [`fence_after_atomic`], [`prefetch`], [`stack_pointer`], `counter`, `PAGE_SIZE`; access to memory that may not be there: [`fetch_u64`] and its kin, [`recover`] |
//! | `preempt` | [`Interruption`]: interrupted code calls a function before it goes on |
//! | `call` | calls that the compiler does not make: [`call_on_stack`], [`call_as_if_from`], [`call_as_pthread`] |
//! | `forward` | macros for C functions that a Rust function cannot be, and [`weak`] |
//! | `walk` | what lies on a stack, for its readers: `saved_registers`, `in_switch` |
//! | `valgrind` | [`on_valgrind`], [`tell_memcheck`] |

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(feature = "dump")]
mod walk;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(feature = "dump")]
pub use walk::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
