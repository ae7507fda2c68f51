//! How much memory, and how many mappings, there are for stacks.

use super::shortage::Shortage;
use crate::sys;

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
pub fn read_file<'a>(path: &core::ffi::CStr, buffer: &'a mut [u8]) -> Option<&'a str> {
    core::str::from_utf8(sys::read_file(path, buffer).ok()?).ok()
}
