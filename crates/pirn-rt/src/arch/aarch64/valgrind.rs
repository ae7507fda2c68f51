//! AArch64: valgrind's client requests, and its idea of the stack pointer. The text at the head of
//! x86-64's file of this name says why a switch goes by [`NOWHERE`].
//!
//! Source: valgrind, `include/valgrind.h` and `coregrind/m_stacks.c`.

use super::END_OF_PROGRAM;
use core::arch::asm;
use core::ops::Range;

/// All addresses that a program can use.
const EVERYWHERE: Range<usize> = 0..END_OF_PROGRAM - 1;
/// Where the stack pointer is for a moment in each switch. Not in a program's memory.
pub(crate) const NOWHERE: usize = END_OF_PROGRAM;

/// Requests to valgrind itself, `valgrind.h`.
const RUNNING_ON_VALGRIND: usize = 0x1001;
const STACK_REGISTER: usize = 0x1501;
/// Requests to memcheck, `memcheck.h`; other tools ignore them.
const MAKE_MEM_NOACCESS: usize = 0x4d43_0000;
const MAKE_MEM_UNDEFINED: usize = MAKE_MEM_NOACCESS + 1;
const MAKE_MEM_DEFINED: usize = MAKE_MEM_NOACCESS + 2;

/// What a program can do with memory, in memcheck's eyes.
#[derive(Clone, Copy)]
pub(crate) enum Memory {
    /// Neither read nor write it.
    Closed,
    /// Write it.
    Undefined,
    /// Read and write it.
    Defined,
}

/// Makes a client request and returns the answer: 0 without valgrind, where the instructions do
/// nothing.
fn request(number: usize, first: usize, second: usize) -> usize {
    let request = [number, first, second, 0, 0, 0];
    let mut answer = 0;
    // SAFETY: the rotations of x12 add up to 128 bits, and x10 is or-ed with itself. Valgrind reads
    // the six words.
    unsafe {
        asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            inout("x3") answer,
            in("x4") &request,
            options(nostack, preserves_flags),
        );
    }
    answer
}

/// Returns whether this process runs under valgrind.
pub fn on_valgrind() -> bool {
    request(RUNNING_ON_VALGRIND, 0, 0) != 0
}

/// Tells memcheck what may be done with memory.
pub(crate) fn tell_memcheck(memory: Memory, range: Range<usize>) {
    let number = match memory {
        Memory::Closed => MAKE_MEM_NOACCESS,
        Memory::Undefined => MAKE_MEM_UNDEFINED,
        Memory::Defined => MAKE_MEM_DEFINED,
    };
    request(number, range.start, range.len());
}

/// Registers the two stacks. Called once, under valgrind, before the first switch.
pub(crate) fn register_stacks() {
    request(STACK_REGISTER, EVERYWHERE.start, EVERYWHERE.end);
    request(STACK_REGISTER, NOWHERE, NOWHERE);
    // To the other stack and back: from now on the current stack is everywhere.
    // SAFETY: under valgrind, which delivers no signal between these instructions.
    unsafe {
        asm!(
            "mov {own}, sp",
            "mov sp, {nowhere}",
            "ldr {nowhere}, [{own}]", // valgrind looks at the stack pointer when memory is read
            "mov sp, {own}",
            own = out(reg) _,
            nowhere = inout(reg) NOWHERE => _,
        );
    }
}
