//! Which process it is, and what the kernel counts for it.

use std::fs;
use std::time::Duration;

use crate::attach::Failure;

/// A process: its number, and when it was started, as numbers are given out again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its number here.
    pub pid: u32,
    /// In clock ticks since the machine was started: field 22 of `/proc/PID/stat`.
    pub started: u64,
    /// The kernel's name for it, of at most 15 bytes.
    pub name: String,
    /// The path of its program, as far as this user may know it.
    pub program: String,
}

impl Identity {
    /// Reads what the kernel says about the process with this number.
    ///
    /// # Errors
    /// If no process has this number.
    pub fn read(pid: u32) -> Result<Identity, Failure> {
        let stat = Stat::read(pid).ok_or(Failure::NoProcess(pid))?;
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        Ok(Identity {
            pid,
            started: stat.started,
            name: stat.name,
            program: program.to_string_lossy().into_owned(),
        })
    }

    /// Whether the process is there, and has not ended.
    pub fn is_there(&self) -> bool {
        self.stat().is_some_and(|stat| !stat.has_ended())
    }

    /// Returns what the kernel says about the process; `None` if it is gone.
    pub(super) fn stat(&self) -> Option<Stat> {
        Stat::read(self.pid).filter(|stat| stat.started == self.started)
    }

    /// Returns how long ago it was started.
    pub fn uptime(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let now = now.tv_sec as f64 + now.tv_nsec as f64 / 1e9;
        Duration::from_secs_f64((now - in_seconds(self.started)).max(0.0))
    }
}

fn in_seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// What the kernel says about a process.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stat {
    name: String,
    /// The kernel's letter.
    pub state: char,
    started: u64,
    /// Processor time that it has had.
    pub cpu_seconds: f64,
    /// Memory that it has, in bytes.
    pub resident: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Stat> {
        // A name may be any bytes.
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Stat::parse(&String::from_utf8_lossy(&text))
    }

    /// Parses `PID (NAME) STATE …`, in which the name may contain anything.
    fn parse(text: &str) -> Option<Stat> {
        let (head, rest) = text.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        // Of these the first has the number 3.
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Stat {
            name: name.into(),
            state: fields.first()?.chars().next()?,
            started: number(22)?,
            cpu_seconds: in_seconds(number(14)?.saturating_add(number(15)?)),
            resident: number(24)?.saturating_mul(rustix::param::page_size() as u64),
        })
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_anything() {
        let text = "17 (a) Z (b) S 1 2 3 4 5 6 7 8 9 10 100 50 13 14 15 16 17 18 4711 20 3 22\n";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((&*stat.name, stat.state), ("a) Z (b", 'S'));
        assert_eq!(stat.started, 4711);
        assert_eq!(stat.cpu_seconds, in_seconds(150));
        assert_eq!(stat.resident, 3 * rustix::param::page_size() as u64);
        assert!(!stat.has_ended());
        for damaged in ["", "17", "17 (x)", "17 (x) S 1 2"] {
            assert_eq!(Stat::parse(damaged), None, "{damaged:?}");
        }
    }

    #[test]
    fn another_process_with_the_number_is_another() {
        let own = Identity::read(std::process::id()).unwrap();
        assert!(own.is_there());
        assert!(own.uptime() < Duration::from_secs(100_000));
        let earlier = Identity {
            started: own.started - 1,
            ..own
        };
        assert!(!earlier.is_there());
    }
}
