//! The machine: registers, the thread pointer and system calls.
//!
//! Nothing above this layer contains an instruction. Each architecture has fourteen files. The
//! first provides [`switch`], [`switch_by_system_call`], [`prepare`], [`syscall`], [`full_fence`],
//! [`fence_after_atomic`] and [`prefetch`]; the second serves functions that ask who calls them
//! ([`call_as_if_from`], [`RETURN`], `forward_after!`), the third those with any number of
//! arguments (`forward_variadic!`), the fourth reads memory that may not be there ([`fetch_u64`]
//! and its kin, [`recover`]), the fifth finds functions that may not be there (`weak!`,
//! [`call_pair`]), the sixth is about the thread pointer ([`thread_pointer`], [`call_with_tp`],
//! [`has_fsgsbase`]), the seventh talks to valgrind ([`on_valgrind`], [`tell_memcheck`]), the
//! eighth makes interrupted code call a function before it goes on ([`Interruption`]), the ninth
//! tells a reader of stacks what lies on them (`saved_registers`, `in_switch`), the tenth reads a
//! counter of time ([`counter`]), the eleventh calls the start routine of a thread of C's
//! ([`call_as_pthread`]), the twelfth leaves most calls of a function to libc (`forward_below!`),
//! the thirteenth calls a function on another stack ([`call_on_stack`]), and the fourteenth knows
//! state that few programs change ([`FloatControls`], [`Extra`]).

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
mod x86_64_caller;
#[cfg(target_arch = "x86_64")]
mod x86_64_counter;
#[cfg(target_arch = "x86_64")]
mod x86_64_fetch;
#[cfg(target_arch = "x86_64")]
mod x86_64_on_stack;
#[cfg(target_arch = "x86_64")]
mod x86_64_preempt;
#[cfg(target_arch = "x86_64")]
mod x86_64_pthread;
#[cfg(target_arch = "x86_64")]
mod x86_64_select;
#[cfg(target_arch = "x86_64")]
mod x86_64_setjmp;
#[cfg(target_arch = "x86_64")]
mod x86_64_state;
#[cfg(target_arch = "x86_64")]
mod x86_64_tp;
#[cfg(target_arch = "x86_64")]
mod x86_64_valgrind;
#[cfg(target_arch = "x86_64")]
mod x86_64_variadic;
#[cfg(all(target_arch = "x86_64", feature = "dump"))]
mod x86_64_walk;
#[cfg(target_arch = "x86_64")]
mod x86_64_weak;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64_counter::*;
#[cfg(all(target_arch = "x86_64", feature = "dump"))]
pub use x86_64_walk::*;
#[cfg(target_arch = "x86_64")]
pub use {
    x86_64::*, x86_64_caller::*, x86_64_fetch::*, x86_64_on_stack::*, x86_64_preempt::*,
    x86_64_pthread::*, x86_64_select::*, x86_64_setjmp::*, x86_64_state::*, x86_64_tp::*,
    x86_64_valgrind::*, x86_64_variadic::*, x86_64_weak::*,
};
