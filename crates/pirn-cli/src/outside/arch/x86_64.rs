//! x86-64.

use std::mem::offset_of;

use libc::user_regs_struct as Registers;

pub const MACHINE: u16 = object::elf::EM_X86_64.0;
pub const REGISTERS: usize = size_of::<Registers>();
pub const PC: usize = offset_of!(Registers, rip);
pub const SP: usize = offset_of!(Registers, rsp);
pub const BP: usize = offset_of!(Registers, rbp);
/// Return addresses are on the stack.
pub const LR: Option<usize> = None;
pub const SAVED_BP: &str = "saved.rbp";
/// The unwind information says where they are.
pub const INTERRUPTED: Option<[&str; 4]> = None;
