//! The processor's part of the library. Each processor offers:
//!
//! | item | |
//! |---|---|
//! | `define!` | a macro that defines functions which jump to addresses found later |
//! | thread-locals | the library finds its own without a call of the dynamic linker's |

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::define;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::define;
