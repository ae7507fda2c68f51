//! The machine measured on, and what it has room for.

use crate::memory;
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// The machine, as far as the results depend on it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    /// Cores that this program may use.
    pub cores: usize,
    pub memory_kib: u64,
    pub kernel: String,
}

impl Machine {
    /// The machine this runs on. What the kernel does not tell stays empty.
    pub fn this() -> Machine {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo.lines().find(|line| line.starts_with("model name"));
        let processor = model.and_then(|line| line.split(": ").nth(1));
        Machine {
            processor: processor.unwrap_or_default().into(),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
            memory_kib: memory::kib_field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default(),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
        }
    }
}

/// How many more OS threads fit, and which setting it is that ends it.
pub fn room_for_os_threads() -> (u64, &'static str) {
    // What else runs on the machine needs some, and so do the peer's runtime and this program.
    const RESERVE: u64 = 4096;
    // Its stack and its signal stack, each with a guard.
    const MAPPINGS: u64 = 4;
    let limits = [
        ("/proc/sys/kernel/pid_max", "kernel.pid_max", 1),
        ("/proc/sys/kernel/threads-max", "kernel.threads-max", 1),
        ("/proc/sys/vm/max_map_count", "vm.max_map_count", MAPPINGS),
    ];
    let room = |(path, name, each): (&str, &'static str, u64)| {
        let limit: u64 = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
        Some(((limit / each).saturating_sub(RESERVE), name))
    };
    let least = limits.into_iter().filter_map(room).min();
    least.unwrap_or((u64::MAX, "nothing"))
}

/// Raises the limit of open files as far as allowed, for this program and its children. Gives what
/// it is then.
pub fn raise_open_files() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // It stays what it was where this fails.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Some of the cores.
#[derive(Clone, Copy)]
pub struct Cpus(CpuSet);

impl Cpus {
    /// Those this program may use.
    pub fn all() -> Cpus {
        Cpus(sched_getaffinity(None).expect("a thread may ask for its own cores"))
    }

    /// The first `count` of them, and the others; at least one each, which is the same one where
    /// there is no other.
    pub fn split(self, count: usize) -> (Cpus, Cpus) {
        let (mut first, mut rest) = (CpuSet::new(), CpuSet::new());
        let mine = (0..CpuSet::MAX_CPU).filter(|&cpu| self.0.is_set(cpu));
        for (i, cpu) in mine.enumerate() {
            let part = if i < count.max(1) {
                &mut first
            } else {
                &mut rest
            };
            part.set(cpu);
        }
        let rest = if rest.count() == 0 { first } else { rest };
        (Cpus(first), Cpus(rest))
    }

    pub fn count(self) -> usize {
        self.0.count() as usize
    }

    /// Calls `f` with the calling thread restricted to these cores, which is how the processes it
    /// starts come to be so too.
    pub fn during<T>(self, f: impl FnOnce() -> T) -> T {
        let before = sched_getaffinity(None);
        // Fails only if none of them is online any more.
        let _ = sched_setaffinity(None, &self.0);
        let value = f();
        if let Ok(before) = before {
            let _ = sched_setaffinity(None, &before);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_split_without_overlap_where_there_are_two() {
        let all = Cpus::all();
        let (first, rest) = all.split(1);
        assert_eq!((first.count(), rest.count()), (1, (all.count() - 1).max(1)));
        assert_eq!(first.during(Cpus::all).count(), 1);
        assert_eq!(Cpus::all().count(), all.count());
    }
}
