//! How much memory, and how many mappings, there are for stacks; and the error that there are no
//! more stacks.
//!
//! The error allocates nothing, because memory is short when it is made. Many are never read: a
//! smaller reservation may succeed, or the caller goes on without.

use super::SizeClass;
use crate::environment;
use crate::sys::{self, Errno};
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
        match environment::probe_allocator(1024) {
            Ok(()) => io::Error::new(io::ErrorKind::OutOfMemory, shortage),
            Err(_) => io::ErrorKind::OutOfMemory.into(),
        }
    }
}

/// The memory that must be free for `spawn` to use new stacks.
const MEMORY_FLOOR: u64 = 64 << 20;

/// Refuses new stacks if the machine, or the container, is nearly out of memory: touching them
/// would trigger the OOM killer, which would end all threads.
pub(super) fn check_memory(promised: u64) -> Result<(), Shortage> {
    let left = memory_left();
    if left >= MEMORY_FLOOR + promised {
        return Ok(());
    }
    Err(Shortage::of_memory(left, promised))
}

/// Returns how many bytes of address space stacks may take in advance.
pub(super) fn spare_addresses() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: an rlimit to be filled in.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) };
    let mut buffer = [0; 64];
    // With strict accounting all address space counts as memory.
    let strict = read_file(c"/proc/sys/vm/overcommit_memory", &mut buffer);
    if strict.is_some_and(|text| text.trim() == "2") {
        limit.rlim_cur = limit.rlim_cur.min(4 << 30);
    }
    usize::try_from(limit.rlim_cur / 8).unwrap_or(usize::MAX)
}

/// Returns the sysctl `vm.max_map_count`.
pub(super) fn mappings_allowed() -> usize {
    let mut buffer = [0; 64];
    read_file(c"/proc/sys/vm/max_map_count", &mut buffer)
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(65530)
}

/// Returns the bytes of memory that are left on this machine or in this cgroup.
pub(super) fn memory_left() -> u64 {
    // Enough for the third line of the first file. A thread that spawns has this on its stack.
    let mut buffer = [0u8; 256];
    let machine = read_file(c"/proc/meminfo", &mut buffer)
        .and_then(|text| meminfo(text, "MemAvailable:"))
        .map_or(u64::MAX, |kb| kb << 10);
    let cgroup = [
        (
            c"/sys/fs/cgroup/memory.max",
            c"/sys/fs/cgroup/memory.current",
        ),
        (
            c"/sys/fs/cgroup/memory/memory.limit_in_bytes",
            c"/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ]
    .into_iter()
    .filter_map(|(limit, usage)| {
        let limit = read_file(limit, &mut buffer)?.trim().parse::<u64>().ok()?;
        let usage = read_file(usage, &mut buffer)?.trim().parse::<u64>().ok()?;
        Some(limit.saturating_sub(usage))
    })
    .min();
    machine.min(cgroup.unwrap_or(u64::MAX))
}

/// Returns a value of `/proc/meminfo`, in KiB, by the beginning of its line.
pub fn meminfo(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// Returns the beginning of a file, as far as it fits.
fn read_file<'a>(path: &core::ffi::CStr, buffer: &'a mut [u8]) -> Option<&'a str> {
    core::str::from_utf8(sys::read_file(path, buffer).ok()?).ok()
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
