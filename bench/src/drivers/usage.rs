//! What a process takes of the system while it works.

use super::{Round, Sample, itself};
use crate::memory::{kib_field, number_field};
use crate::process::Process;
use anyhow::{Context, Result};
use std::fs::{DirEntry, read_dir, read_to_string};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// OS threads and memory at their highest, and processor time.
pub fn round(process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
    let pid = process.id();
    let (start, before) = (Instant::now(), processor_time(pid)?);
    let (peak, worked) = watched(pid, || itself(process, round));
    worked?;
    let busy = processor_time(pid)?.saturating_sub(before).as_secs_f64() * 1000.0;
    let mut samples = peak.samples();
    samples.push(Sample::new(
        "processor",
        busy / start.elapsed().as_secs_f64(),
    ));
    Ok(samples)
}

/// The most a process has had.
#[derive(Clone, Copy, Default)]
pub struct Peak {
    threads: u64,
    kib: u64,
}

impl Peak {
    pub fn samples(self) -> Vec<Sample> {
        vec![
            Sample::new("OS threads", self.threads as f64),
            Sample::new("memory", self.kib as f64 / 1024.0),
        ]
    }

    fn update(&mut self, pid: u32) -> Result<()> {
        let status = read_to_string(format!("/proc/{pid}/status"))?;
        self.threads = self.threads.max(number_field(&status, "Threads")?);
        self.kib = self.kib.max(kib_field(&status, "VmRSS")?);
        Ok(())
    }
}

/// Watches a process while `f` runs.
pub fn watched<T>(pid: u32, f: impl FnOnce() -> T) -> (Peak, T) {
    const EVERY: Duration = Duration::from_millis(20);
    let (stop, stopped) = mpsc::channel::<()>();
    let watcher = thread::spawn(move || {
        let mut peak = Peak::default();
        while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            // It may be ending.
            let _ = peak.update(pid);
        }
        peak
    });
    let value = f();
    drop(stop);
    (watcher.join().unwrap_or_default(), value)
}

/// Processor time of a process so far, in user and kernel mode together: the sum of the threads it
/// has, to the nanosecond, or of all it ever had, to the tick, whichever is more. May go down a
/// little when a thread ends.
pub fn processor_time(pid: u32) -> Result<Duration> {
    let stat = read_to_string(format!("/proc/{pid}/stat"))?;
    let all = times(&stat, UTIME)?;
    let nanos = |thread: DirEntry| -> Option<u64> {
        let stat = read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse().ok()
    };
    let threads = read_dir(format!("/proc/{pid}/task"))?.flatten();
    let living = Duration::from_nanos(threads.filter_map(nanos).sum());
    Ok(all.max(living))
}

/// Processor time so far, to the tick, of our children that have ended: clients.
pub fn children_time() -> Result<Duration> {
    times(&read_to_string("/proc/self/stat")?, CUTIME)
}

/// The fields of `/proc/PID/stat` in which times begin, counted from 1.
const UTIME: usize = 14;
const CUTIME: usize = 16;

/// Returns the sum of the times in user and in kernel mode, of which this field is the first.
fn times(stat: &str, field: usize) -> Result<Duration> {
    // The second field, a name in parentheses, may have spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(field - 3).take(2);
    let ticks: Result<Vec<u64>, _> = ticks.map(str::parse).collect();
    let ticks: u64 = ticks.context("odd times in /proc")?.iter().sum();
    let millis = ticks * 1000 / rustix::param::clock_ticks_per_second();
    Ok(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let numbers: Vec<String> = (4..=52).map(|field| (field * 10).to_string()).collect();
        let stat = format!("1 (a) b)) S {}", numbers.join(" "));
        let per_tick = 1000 / rustix::param::clock_ticks_per_second();
        assert_eq!(
            times(&stat, UTIME).unwrap(),
            Duration::from_millis(290 * per_tick)
        );
        assert_eq!(
            times(&stat, CUTIME).unwrap(),
            Duration::from_millis(330 * per_tick)
        );
    }
}
