//! x86-64, System V ABI.

mod call;
mod forward;
mod instructions;
mod preempt;
mod registers;
mod switch;
mod valgrind;
#[cfg(feature = "dump")]
mod walk;

#[cfg(feature = "dump")]
pub use walk::*;
pub use {call::*, forward::*, instructions::*, preempt::*, registers::*, switch::*, valgrind::*};
