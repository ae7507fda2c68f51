//! The processor's registers, as the library that unwinds takes them.
//!
//! Each processor has a file, which provides:
//!
//! | item | |
//! |---|---|
//! | [`registers`] | the registers from which a stack is unwound |
//!
//! What the runtime itself leaves on stacks is in `pirn_rt::arch`.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
