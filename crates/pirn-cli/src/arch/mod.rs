//! The processors that Pirn runs on, and the one that this command runs on. Each offers:
//!
//! | item | |
//! |---|---|
//! | `THIS` | its [`Processor`] |
//! | `thread_pointer` | how programs set the thread pointer on a machine, from its files |

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use object::elf::{EM_AARCH64, EM_X86_64, Machine};

#[cfg(target_arch = "aarch64")]
pub use aarch64::{THIS, thread_pointer};
#[cfg(target_arch = "x86_64")]
pub use x86_64::{THIS, thread_pointer};

/// A processor that Pirn runs on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Processor {
    X86_64,
    Aarch64,
}

impl Processor {
    /// Returns the processor that an ELF file is for; `None` for another one.
    pub fn of(machine: Machine) -> Option<Processor> {
        match machine {
            EM_X86_64 => Some(Processor::X86_64),
            EM_AARCH64 => Some(Processor::Aarch64),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Processor::X86_64 => "x86-64",
            Processor::Aarch64 => "AArch64",
        }
    }

    /// Returns the beginning of the file name of glibc's dynamic linker.
    pub fn linker(self) -> &'static str {
        match self {
            Processor::X86_64 => "ld-linux-x86-64.so",
            Processor::Aarch64 => "ld-linux-aarch64.so",
        }
    }

    /// Returns the target for which Rust programs are built.
    pub fn target(self) -> &'static str {
        match self {
            Processor::X86_64 => "x86_64-unknown-linux-gnu",
            Processor::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }
}

/// How programs set the thread pointer, which each switch between virtual threads does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(dead_code, reason = "a processor has some of them")]
pub enum ThreadPointer {
    /// By an instruction that all such processors have.
    Instruction,
    /// By an instruction of this processor (FSGSBASE).
    Fsgsbase,
    /// By a system call: the kernel does not let programs use FSGSBASE.
    Withheld,
    /// By a system call: the processor has no FSGSBASE.
    Lacking,
    /// The machine's files do not say.
    #[default]
    Unknown,
}
