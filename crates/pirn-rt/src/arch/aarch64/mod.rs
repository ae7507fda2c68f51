//! AArch64, AAPCS64.

mod call;
mod forward;
mod instructions;
pub mod legacy;
mod preempt;
mod registers;
mod switch;
mod valgrind;

pub use {call::*, forward::*, instructions::*, preempt::*, registers::*, switch::*, valgrind::*};
