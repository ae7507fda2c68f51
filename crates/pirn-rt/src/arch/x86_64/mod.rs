//! x86-64, System V ABI.

mod call;
mod forward;
mod instructions;
pub mod legacy;
mod preempt;
mod registers;
mod switch;
mod valgrind;

pub use {call::*, forward::*, instructions::*, preempt::*, registers::*, switch::*, valgrind::*};
