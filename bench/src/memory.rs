//! The memory of this process: making it ready, and measuring it.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::hint::black_box;

const PAGE: usize = 4096;

/// Touches this much memory and frees it, so that the machine has it ready from here on.
pub fn warm(bytes: usize) {
    let mut memory: Vec<u8> = Vec::with_capacity(bytes);
    for page in memory.spare_capacity_mut().chunks_mut(PAGE) {
        page[0].write(1);
    }
    black_box(&mut memory);
}

/// What this process takes up at some moment.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Footprint {
    /// Bytes in memory (VmRSS).
    pub resident: u64,
    /// Bytes of page tables, which the kernel holds for the process (VmPTE).
    pub page_tables: u64,
}

impl Footprint {
    pub fn now() -> Result<Footprint> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        Ok(Footprint {
            resident: kib_field(&status, "VmRSS")? * 1024,
            page_tables: kib_field(&status, "VmPTE")? * 1024,
        })
    }

    /// How much it has grown since.
    pub fn since(self, earlier: Footprint) -> Footprint {
        Footprint {
            resident: self.resident.saturating_sub(earlier.resident),
            page_tables: self.page_tables.saturating_sub(earlier.page_tables),
        }
    }
}

/// A field of `/proc/self/status` or `/proc/meminfo`, in KiB.
pub fn kib_field(text: &str, name: &str) -> Result<u64> {
    let field = |line: &str| {
        let value = line.strip_prefix(name)?.strip_prefix(':')?;
        value.trim().strip_suffix(" kB")?.parse().ok()
    };
    text.lines()
        .find_map(field)
        .with_context(|| format!("the kernel does not tell {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "VmRSSX:\t 1 kB\nVmRSS:\t   12345 kB\nVmPTE:\t 4 kB\n";
        assert_eq!(kib_field(status, "VmRSS").unwrap(), 12345);
        assert!(
            kib_field(status, "VmR")
                .unwrap_err()
                .to_string()
                .contains("VmR")
        );
    }

    #[test]
    fn touched_memory_shows() {
        let before = Footprint::now().unwrap();
        let touched = black_box(vec![1u8; 64 << 20]);
        let growth = Footprint::now().unwrap().since(before);
        // Other tests free memory meanwhile, but not as much.
        assert!(growth.resident > 32 << 20, "{growth:?}");
        drop(touched);
    }
}
