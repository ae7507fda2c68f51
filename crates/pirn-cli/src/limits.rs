//! The machine's limits (open files, threads, mappings, memory), and how many users fit into them.
//!
//! Each known limit gives a [`Room`]. A limit that cannot be read is treated as absent: if the
//! program reaches it all the same, the error of the thread that cannot be started says so.

use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cgroup;

/// The number of users that one limit allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// The number of users.
    pub users: usize,
    /// The limit, by its name and value.
    pub reason: String,
}

/// A user is two threads, one on each side.
const THREADS_PER_USER: u64 = 2;

/// Open files beside the users', the listeners' and the carriers': standard streams, epoll sets,
/// what the runtime reads in `/proc`, and what the process has inherited. 11 were seen.
const OTHER_FILES: u64 = 32;

/// Mappings of a platform thread: its stack and its signal stack, each with a guard page.
const MAPPINGS_PER_THREAD: u64 = 4;

/// Memory of a user on virtual threads, in bytes: stacks, buffers, and the kernel's two sockets.
const VIRTUAL_BYTES_PER_USER: u64 = 40 * 1024;

/// The same on platform threads, with the kernel's stack and other data of two threads.
const PLATFORM_BYTES_PER_USER: u64 = 112 * 1024;

/// Returns how many of `wanted` users there is room for, with the reason if it is not all of them.
pub fn fit(wanted: usize, rooms: &[Room]) -> (usize, Option<String>) {
    match rooms.iter().min_by_key(|room| room.users) {
        Some(least) if least.users < wanted => (least.users, Some(least.reason.clone())),
        _ => (wanted, None),
    }
}

/// Returns the limits of users on virtual threads.
pub fn for_virtual() -> Vec<Room> {
    [open_files(), memory(VIRTUAL_BYTES_PER_USER)]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns the limits of users on platform threads.
pub fn for_platform() -> Vec<Room> {
    let running = running_threads();
    let system_wide = |name: &str| {
        let limit: u64 = read(format!("/proc/sys/kernel/{name}"))?;
        let reason = format!("kernel.{name} is {limit}, and {running} threads are running");
        Some(threads_room(limit, running, reason))
    };
    [
        open_files(),
        memory(PLATFORM_BYTES_PER_USER),
        system_wide("threads-max"),
        system_wide("pid_max"),
        cgroup_threads(),
        user_threads(),
        mappings(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the number of open files that this many users take on either side.
pub fn open_files_for(users: usize) -> u64 {
    users as u64 + files_beside(users as u64)
}

/// Returns the number of open files that the server, the larger side, needs beside one per user:
/// the runtime may keep one per carrier, in which it reads whether the carrier runs.
fn files_beside(users: u64) -> u64 {
    let carriers = thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    let listeners = users.div_ceil(connections_per_address() as u64);
    OTHER_FILES + carriers + listeners
}

/// Raises this process's limit of open files to `wanted`, or as near as possible: the soft limit up
/// to the hard one, and the hard one if the process is privileged.
pub fn raise_open_files(wanted: u64) {
    let ceiling = read("/proc/sys/fs/nr_open").unwrap_or(u64::MAX);
    let wanted = wanted.min(ceiling);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum: maximum.map(|maximum| maximum.max(wanted)),
    };
    if setrlimit(Resource::Nofile, raised).is_err() {
        // Not privileged: raise it to the allowed maximum. If even this fails, the limit stays, and
        // `open_files` reads it.
        let allowed = Rlimit {
            current: maximum,
            maximum,
        };
        let _ = setrlimit(Resource::Nofile, allowed);
    }
}

/// Returns the number of connections that may be made to one address and port: three quarters of
/// the port numbers that the kernel gives to clients, since connections closed in the last minute
/// still hold theirs.
pub fn connections_per_address() -> usize {
    let ports = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| parse_port_range(&range))
        .unwrap_or(28_000);
    (ports / 4 * 3).max(1)
}

fn parse_port_range(range: &str) -> Option<usize> {
    let mut ends = range.split_whitespace().map(usize::from_str);
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    (first <= last).then(|| last - first + 1)
}

fn open_files() -> Option<Room> {
    let limit = getrlimit(Resource::Nofile).current?;
    let others = files_beside(limit);
    Some(Room {
        users: users(limit.saturating_sub(others)),
        reason: format!(
            "the limit of open files is {limit} (ulimit -n, fs.nr_open), a user takes one on each \
             side, and {others} are for listeners, epoll and the runtime"
        ),
    })
}

fn memory(bytes_per_user: u64) -> Option<Room> {
    let available = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|meminfo| parse_available(&meminfo));
    let cgroup = cgroup::room(&cgroup::MEMORY);
    let available = available.into_iter().chain(cgroup).min()?;
    Some(Room {
        // An eighth is left to other programs.
        users: users((available - available / 8) / bytes_per_user),
        reason: format!(
            "{} MiB of memory are available, and a user takes up to {} KiB",
            available >> 20,
            bytes_per_user >> 10
        ),
    })
}

fn parse_available(meminfo: &str) -> Option<u64> {
    let value = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = value.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Returns the number of users for whom `limit` threads suffice if `running` exist already. A
/// sixteenth is left free, because other programs must still be able to start a process.
fn threads_room(limit: u64, running: u64, reason: String) -> Room {
    let free = (limit - limit / 16).saturating_sub(running);
    Room {
        users: users(free / THREADS_PER_USER),
        reason,
    }
}

/// Returns the number of threads of all processes, from the fourth field of `/proc/loadavg`.
fn running_threads() -> u64 {
    fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|loadavg| parse_running(&loadavg))
        .unwrap_or(0)
}

fn parse_running(loadavg: &str) -> Option<u64> {
    let (_, all) = loadavg.split_whitespace().nth(3)?.split_once('/')?;
    all.parse().ok()
}

fn cgroup_threads() -> Option<Room> {
    let free = cgroup::room(&cgroup::PIDS)?;
    let reason = format!("the cgroup's pids limit leaves {free} threads");
    Some(threads_room(free, 0, reason))
}

/// `RLIMIT_NPROC`, which the kernel does not apply to root.
fn user_threads() -> Option<Room> {
    if rustix::process::geteuid().is_root() {
        return None;
    }
    let limit = getrlimit(Resource::Nproc).current?;
    let reason = format!("the limit of threads per user is {limit} (ulimit -u)");
    Some(threads_room(limit, 0, reason))
}

/// `vm.max_map_count`. It must not be hit: a thread of `std` without room for its signal stack
/// aborts the process.
fn mappings() -> Option<Room> {
    let limit: u64 = read("/proc/sys/vm/max_map_count")?;
    let existing = fs::read_to_string("/proc/self/maps").ok()?.lines().count() as u64;
    let free = (limit - limit / 64).saturating_sub(existing);
    Some(Room {
        users: users(free / MAPPINGS_PER_THREAD),
        reason: format!(
            "vm.max_map_count is {limit}, and a platform thread takes {MAPPINGS_PER_THREAD} mappings"
        ),
    })
}

/// Returns the number in a file; `None` if there is no such file or it has no number ("max").
fn read<N: FromStr>(path: impl AsRef<Path>) -> Option<N> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn users(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
