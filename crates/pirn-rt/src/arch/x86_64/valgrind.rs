//! x86-64: valgrind's client requests, and its idea of the stack pointer.
//!
//! Valgrind follows the stack pointer: what it moves over becomes part of a frame, or ceases to be.
//! A switch between stacks must not look like a very large frame. Valgrind takes an update of the
//! stack pointer for a switch if it leads from one *registered stack* to another, and does nothing
//! then. But it keeps one current stack for all threads: if each stack were registered, valgrind
//! would take a thread's next large frame for a switch whenever another thread has run in between,
//! and report the accesses to this frame.
//!
//! So there are two registered stacks here. All memory is one of them, [`EVERYWHERE`], and so all
//! threads are always on it. The other, [`NOWHERE`], is where no memory is: a switch sets the stack
//! pointer to that address in between, and so comes from another stack in valgrind's eyes.
//! (Valgrind also takes the bounds of a stack from these, as far as memory is mapped there, to
//! follow the stack's frames.)
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
    // SAFETY: the rotations of rdi add up to 128 bits and the exchange is with itself. Valgrind
    // reads the six words.
    unsafe {
        asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            inout("rdx") answer,
            in("rax") &request,
            inout("rdi") 0usize => _,
            options(nostack),
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
            "mov {own}, rsp",
            "mov rsp, {nowhere}",
            "mov {nowhere}, [{own}]", // valgrind looks at the stack pointer when memory is read
            "mov rsp, {own}",
            own = out(reg) _,
            nowhere = inout(reg) NOWHERE => _,
        );
    }
}
