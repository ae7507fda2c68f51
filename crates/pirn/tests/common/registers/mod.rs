//! Registers that must stay as they are.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::registers_stay;
#[cfg(target_arch = "x86_64")]
pub use x86_64::registers_stay;
