//! Memory: making it ready, and measuring a process from outside.

use anyhow::{Context, Result, ensure};
use std::fs::read_to_string;
use std::hint::black_box;

const PAGE: usize = 4096;

/// Touches this much memory and frees it, so that the machine has it ready from here on: the first
/// touch of memory that a virtual machine has not been given yet costs ten times a page fault.
/// Leaves some to the rest of the machine.
pub fn warm(bytes: u64) {
    let bytes = bytes.min(available().unwrap_or(0) / 10 * 8) as usize;
    let mut memory: Vec<u8> = Vec::with_capacity(bytes);
    for page in memory.spare_capacity_mut().chunks_mut(PAGE) {
        page[0].write(1);
    }
    black_box(&mut memory);
}

/// Bytes of memory that can still be had.
pub fn available() -> Result<u64> {
    Ok(kib_field(&read_to_string("/proc/meminfo")?, "MemAvailable")? * 1024)
}

/// Checks that so much memory can be had.
pub fn ensure_available(bytes: u64) -> Result<()> {
    let available = available()?;
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    ensure!(
        bytes <= available,
        "it may need {} MiB of memory, and {} MiB are available; try smaller sizes with --set or a smaller --memory",
        mib(bytes),
        mib(available)
    );
    Ok(())
}

/// What a process takes up at some moment, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Footprint {
    /// Resident memory (VmRSS).
    pub resident: u64,
    /// What the kernel holds for it: its page tables (VmPTE), and the kernel stacks and other
    /// kernel memory of the whole machine, which on a machine that does nothing else grow by the
    /// process's alone.
    pub kernel: u64,
}

impl Footprint {
    pub fn of(pid: u32) -> Result<Footprint> {
        let status = read_to_string(format!("/proc/{pid}/status")).context("it is gone")?;
        let machine = read_to_string("/proc/meminfo")?;
        let kernel = kib_field(&status, "VmPTE")?
            + kib_field(&machine, "KernelStack")?
            + kib_field(&machine, "SUnreclaim")?;
        Ok(Footprint {
            resident: kib_field(&status, "VmRSS")? * 1024,
            kernel: kernel * 1024,
        })
    }

    /// How much it has grown since.
    pub fn since(self, earlier: Footprint) -> Footprint {
        Footprint {
            resident: self.resident.saturating_sub(earlier.resident),
            kernel: self.kernel.saturating_sub(earlier.kernel),
        }
    }

    pub fn total(self) -> u64 {
        self.resident + self.kernel
    }
}

/// A field of `/proc/PID/status` or `/proc/meminfo`, in KiB.
pub fn kib_field(text: &str, name: &str) -> Result<u64> {
    let value = field(text, name)?;
    let kib = value.strip_suffix(" kB").and_then(|n| n.parse().ok());
    kib.with_context(|| format!("{name} is {value:?}"))
}

/// A field of `/proc/PID/status` that is a plain number.
pub fn number_field(text: &str, name: &str) -> Result<u64> {
    let value = field(text, name)?;
    value
        .parse()
        .with_context(|| format!("{name} is {value:?}"))
}

fn field<'a>(text: &'a str, name: &str) -> Result<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    let found = text.lines().find_map(value).map(str::trim);
    found.with_context(|| format!("the kernel does not tell {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "VmRSSX:\t 1 kB\nVmRSS:\t   12345 kB\nThreads:\t7\n";
        assert_eq!(kib_field(status, "VmRSS").unwrap(), 12345);
        assert_eq!(number_field(status, "Threads").unwrap(), 7);
        assert!(kib_field(status, "VmR").is_err());
    }

    #[test]
    fn what_no_machine_has_is_refused_with_both_numbers() {
        let error = ensure_available(1 << 60).unwrap_err().to_string();
        assert!(
            error.contains("1099511627776 MiB") && error.contains("available"),
            "{error}"
        );
    }
}
