//! AArch64.

use std::mem::offset_of;

use libc::user_regs_struct as Registers;

pub const MACHINE: u16 = object::elf::EM_AARCH64.0;
pub const REGISTERS: usize = size_of::<Registers>();
pub const PC: usize = offset_of!(Registers, pc);
pub const SP: usize = offset_of!(Registers, sp);
pub const BP: usize = offset_of!(Registers, regs) + 29 * 8;
pub const LR: Option<usize> = Some(offset_of!(Registers, regs) + 30 * 8);
pub const SAVED_BP: &str = "saved.x29";
pub const INTERRUPTED: Option<[&str; 4]> = Some([
    "interrupted.pc",
    "interrupted.sp",
    "interrupted.x29",
    "interrupted.x30",
]);
