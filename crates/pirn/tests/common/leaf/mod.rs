//! A function in which a thread is found before it has a frame.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::spin;
#[cfg(target_arch = "x86_64")]
pub use x86_64::spin;
