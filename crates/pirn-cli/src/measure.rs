//! The machine's resources that processes use: resident memory and OS threads.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The interval between two looks of a [`Sampler`].
const EVERY: Duration = Duration::from_millis(100);

/// The values of `/proc/PID/status` at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Resident memory in bytes (`VmRSS`).
    pub resident: u64,
    /// Page tables in bytes (`VmPTE`): not part of the resident memory, and considerable for many
    /// stacks.
    pub page_tables: u64,
    /// OS threads.
    pub threads: u64,
}

impl Usage {
    /// Returns the usage of this process now.
    ///
    /// # Errors
    /// If `/proc` is not mounted, or differs from Linux's.
    pub fn now() -> io::Result<Self> {
        Self::read("self")
    }

    /// Returns the usage of this process and another one together.
    ///
    /// # Errors
    /// As for [`now`](Self::now), and if there is no other one.
    pub fn with(other: u32) -> io::Result<Self> {
        let (own, other) = (Self::now()?, Self::read(&other.to_string())?);
        Ok(Usage {
            resident: own.resident + other.resident,
            page_tables: own.page_tables + other.page_tables,
            threads: own.threads + other.threads,
        })
    }

    fn read(process: &str) -> io::Result<Self> {
        let path = format!("/proc/{process}/status");
        let missing = || io::Error::other(format!("{path} does not say VmRSS and Threads"));
        Self::parse(&std::fs::read_to_string(&path)?).ok_or_else(missing)
    }

    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| -> Option<u64> {
            let mut lines = status.lines();
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            value.split_whitespace().next()?.parse().ok()
        };
        Some(Usage {
            resident: field("VmRSS")? * 1024,
            page_tables: field("VmPTE").unwrap_or(0) * 1024,
            threads: field("Threads")?,
        })
    }

    /// Returns resident memory and page tables together, in bytes.
    pub fn memory(&self) -> u64 {
        self.resident + self.page_tables
    }

    /// Returns the higher value of each.
    pub fn max(self, other: Self) -> Self {
        Usage {
            resident: self.resident.max(other.resident),
            page_tables: self.page_tables.max(other.page_tables),
            threads: self.threads.max(other.threads),
        }
    }
}

/// Watches both processes from a platform thread, and finds the highest usage.
pub struct Sampler {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Usage>,
}

impl Sampler {
    /// Starts to watch. `on_tick` is called at each look, for a progress line.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(other: u32, mut on_tick: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = Builder::new().name("sampler".into()).spawn(move || {
            let mut peak = Usage::default();
            loop {
                // A look that fails is left out; the next may succeed.
                peak = peak.max(Usage::with(other).unwrap_or_default());
                on_tick();
                if stopped.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
                    return peak;
                }
            }
        })?;
        Ok(Sampler { stop, thread })
    }

    /// Stops watching. Returns the highest usage seen.
    pub fn finish(self) -> Usage {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
