//! The machine: registers, the thread pointer and system calls.
//!
//! Nothing above this layer contains an instruction. One file per architecture; each provides
//! [`switch`], [`prepare`], [`call_with_tp`], [`thread_pointer`] and [`syscall`], and in a file of
//! its own what concerns functions that ask for their caller.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
mod x86_64_caller;
#[cfg(target_arch = "x86_64")]
pub(crate) use {x86_64::*, x86_64_caller::*};
