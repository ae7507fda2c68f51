//! What the kernel says about a process, and finding one by its name.

use std::fs;
use std::path::{Path, PathBuf};

use super::failure::Failure;

/// The name of the thread of each process with virtual threads that is to be asked.
const MONITOR: &str = "pirn-monitor";

/// A process, as `/proc` describes it.
#[derive(Debug)]
pub struct Process {
    /// Its number here.
    pub pid: u32,
    /// Its number as it sees it itself, in the innermost namespace.
    pub inner: u32,
    /// The kernel's name for it, of at most 15 bytes.
    pub name: String,
    /// The kernel's letter for its state.
    pub state: char,
    /// Its effective user, as seen here.
    pub user: u32,
    /// The number of the thread that is to be asked.
    pub(super) monitor: Option<u32>,
    /// The signals that it handles: bit `n - 1` for signal `n`.
    pub(super) handled: u64,
}

impl Process {
    /// Reads what the kernel says about a process. The number of one of its threads will do, too.
    pub fn read(number: u32) -> Result<Process, Failure> {
        let status = || {
            let status = fs::read_to_string(format!("/proc/{number}/status"));
            status.map_err(|_| Failure::NoProcess(number))
        };
        let none = Failure::NoProcess(number);
        let monitor = monitor_of(process_of(&status()?).ok_or(none)?);
        // Read after the thread was found, which a process makes when it handles the signal: it may
        // have just begun, and would seem not to let tools in.
        parse(&status()?, monitor).ok_or(Failure::NoProcess(number))
    }

    /// Returns a path as the process sees it, as one for this process.
    pub fn path(&self, path: &Path) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.pid));
        root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// Returns the value of a line of a `status` file.
fn value<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    let mut lines = status.lines();
    lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

/// Returns the process that the text of a `status` file is about.
fn process_of(status: &str) -> Option<u32> {
    value(status, "Tgid")?.parse().ok()
}

/// Parses the text of a `status` file. `monitor` is the process's thread to be asked.
fn parse(status: &str, monitor: Option<u32>) -> Option<Process> {
    let value = |name: &str| value(status, name);
    let pid = process_of(status)?;
    let inner = value("NSpid").and_then(|pids| pids.split_whitespace().last()?.parse().ok());
    Some(Process {
        pid,
        inner: inner.unwrap_or(pid),
        name: value("Name")?.into(),
        state: value("State")?.chars().next()?,
        user: value("Uid")?.split_whitespace().nth(1)?.parse().ok()?,
        monitor,
        handled: u64::from_str_radix(value("SigCgt")?, 16).ok()?,
    })
}

/// Returns the number of the process's thread that is to be asked.
fn monitor_of(pid: u32) -> Option<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    threads.flatten().find_map(|thread| {
        let name = fs::read_to_string(thread.path().join("comm")).ok()?;
        let number = thread.file_name().to_str()?.parse().ok()?;
        (name.trim_end() == MONITOR).then_some(number)
    })
}

/// Finds the process that the user means: by its number, or by its name if only one process with
/// virtual threads has that.
pub fn find(meant: &str) -> Result<u32, Failure> {
    if let Ok(pid) = meant.parse() {
        return Process::read(pid).map(|process| process.pid);
    }
    let called = numbers().into_iter().filter(|pid| is_called(*pid, meant));
    let found: Vec<_> = called.filter(|pid| monitor_of(*pid).is_some()).collect();
    match found[..] {
        [] => Err(Failure::NoName(meant.into())),
        [pid] => Ok(pid),
        _ => Err(Failure::Names(meant.into(), found)),
    }
}

/// Returns all processes with virtual threads, as far as this user sees.
pub fn all() -> Vec<Process> {
    let read = numbers()
        .into_iter()
        .filter_map(|pid| Process::read(pid).ok());
    read.filter(|process| process.monitor.is_some()).collect()
}

/// Returns the numbers of all processes, in order.
fn numbers() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut numbers: Vec<_> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Returns whether a process has this name: the kernel's, of at most 15 bytes, or its program's.
fn is_called(pid: u32, name: &str) -> bool {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    comm.trim_end() == name
        || fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|path| path.file_name().is_some_and(|program| program == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tserver\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t31\nNgid:\t0\n\
        Pid:\t33\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t31\t7\nSigCgt:\t0000000000400004\n";

    #[test]
    fn a_process_is_read_from_its_status() {
        let process = parse(STATUS, Some(32)).unwrap();
        assert_eq!((process.pid, process.inner, process.user), (31, 7, 1001));
        assert_eq!((process.name.as_str(), process.state), ("server", 'S'));
        assert_eq!((process.monitor, process.handled), (Some(32), 0x40_0004));
        let path = process.path(Path::new("/tmp/x"));
        assert_eq!(path, Path::new("/proc/31/root/tmp/x"));
    }

    #[test]
    fn a_kernel_without_namespaces_has_one_number() {
        let status = STATUS.replace("NSpid:\t31\t7\n", "");
        assert_eq!(parse(&status, None).unwrap().inner, 31);
        assert!(parse("Name:\tx\n", None).is_none());
    }
}
