//! Single instructions that tests need.
//!
//! | item | |
//! |---|---|
//! | [`inline`] | makes a system call that only the kernel sees |
//! | [`undefined`] | executes an instruction for which the kernel sends `SIGILL` |
//! | [`skip_undefined`] | has a handler of this signal go on behind the instruction |
//! | [`set_step_flag`] | has a `SIGTRAP` come after each instruction, or not; see [`can_step`] |
//! | [`Arguments`] | what a C function gets for a list of variable arguments |
//! | [`STAT_VERSIONS`] | what `__xstat` takes |
//! | [`HAS_SEGMENTS`] | whether a thread has a base register for the program's use |
//! | [`in_many_steps`] | does by instructions that can be interrupted midway what can be checked |

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

/// Returns whether [`set_step_flag`] does what it says. If not, prints that the test is left out.
pub fn can_step() -> bool {
    if !HAS_STEP_FLAG {
        super::skip("a program cannot set this processor's flag for single steps, a tracer can");
    }
    HAS_STEP_FLAG
}
