//! The error that there are no more stacks.
//!
//! It allocates nothing, because memory is short when it is made. Many are never read: a smaller
//! reservation may succeed, or the caller goes on without.

use super::SizeClass;
use crate::sys::Errno;
use core::fmt;
use std::io;

/// What there is too little of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shortage {
    /// Address space for stacks of this class.
    Addresses(Errno, SizeClass),
    /// Entries in the table of regions.
    Regions,
    /// Memory for the lists of stacks.
    Lists,
    /// Page tables for a guard marker.
    Guards(Errno),
    /// Memory mappings for guards, as the kernel says.
    Mappings(Errno),
    /// Memory mappings that are not left to the rest of the program.
    MappingsToSpare,
    /// Memory, in MiB: what is left, and how much of that is promised.
    Memory { left: u32, promised: u32 },
}

impl Shortage {
    /// Returns the shortage of memory, in bytes, of which `left` are left.
    pub(super) fn of_memory(left: u64, promised: u64) -> Shortage {
        let mib = |bytes: u64| u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
        Shortage::Memory {
            left: mib(left),
            promised: mib(promised),
        }
    }
}

impl Shortage {
    /// Returns what to say, without allocating, when a slot that was promised cannot be guarded.
    pub(super) fn of_guard(&self) -> &'static str {
        match self {
            Shortage::Mappings(_) => {
                "no memory mapping for the guard page of a stack, which takes one in locked \
                 memory (mlockall): raise the sysctl vm.max_map_count"
            }
            _ => "no memory for the guard page of a stack",
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Shortage::Addresses(e, class) => write!(
                f,
                "no address space for a virtual thread's stack of {} KiB: {e}. What limits it: \
                 ulimit -v, the sysctl vm.overcommit_memory=2, or the sysctl vm.max_map_count",
                class.stack_bytes() / 1024
            ),
            Shortage::Regions => f.write_str(
                "all stack regions are in use: too many virtual threads with large stacks",
            ),
            Shortage::Lists => f.write_str("no memory for the list of stacks"),
            Shortage::Guards(e) => write!(f, "no memory for a stack's guard page: {e}"),
            Shortage::Mappings(e) => out_of_mappings(f, &e),
            Shortage::MappingsToSpare => out_of_mappings(f, &"the rest is left to the program"),
            Shortage::Memory { left, promised } => write!(
                f,
                "only {left} MiB of memory are left on this machine or in this cgroup, of which \
                 {promised} MiB are promised to threads that have not run yet: no new stacks"
            ),
        }
    }
}

fn out_of_mappings(f: &mut fmt::Formatter<'_>, why: &dyn fmt::Display) -> fmt::Result {
    write!(
        f,
        "no more guard pages for stacks: {why}. This kernel has no guard markers (Linux 6.13), or \
         not for locked memory (mlockall), so every stack takes two memory mappings; raise the \
         sysctl vm.max_map_count"
    )
}

impl core::error::Error for Shortage {}

impl From<Shortage> for io::Error {
    /// An error with a text, which takes two small allocations that abort the process if they fail:
    /// where there is no memory even for these, an error without a text.
    #[cold]
    fn from(shortage: Shortage) -> io::Error {
        let mut room: Vec<u8> = Vec::new();
        match core::hint::black_box(&mut room).try_reserve_exact(1024) {
            Ok(()) => {
                drop(room);
                io::Error::new(io::ErrorKind::OutOfMemory, shortage)
            }
            Err(_) => io::ErrorKind::OutOfMemory.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_to_do() {
        let class = SizeClass::for_bytes(64 << 10);
        let errno = Errno(libc::ENOMEM);
        for (shortage, advice) in [
            (Shortage::Addresses(errno, class), "ulimit -v"),
            (Shortage::Mappings(errno), "vm.max_map_count"),
            (Shortage::MappingsToSpare, "left to the program"),
            (Shortage::of_memory(5 << 20, 3 << 20), "only 5 MiB"),
        ] {
            let error = io::Error::from(shortage);
            assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
            assert!(error.to_string().contains(advice), "{error}");
        }
    }
}
