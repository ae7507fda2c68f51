//! AArch64.

use super::{Processor, ThreadPointer};

pub const THIS: Processor = Processor::Aarch64;

/// Returns how programs set the thread pointer.
pub fn thread_pointer(_flags: Option<&str>, _hwcap2: Option<u64>) -> ThreadPointer {
    ThreadPointer::Instruction
}
