//! The memory of virtual threads.

use pirn_rt::blocking::{fds, parking_lot};
use pirn_rt::glibc::tls;
use pirn_rt::runtime::Runtime;
use pirn_rt::stack::{census, memory::meminfo};
use pirn_rt::sys;
use pirn_rt::vthread::{magazines, table};

/// The memory that virtual threads take, in bytes: what of it is resident, and how much address
/// space is set aside.
///
/// `stacks`, `stacks_cached`, `records`, `timers`, `parking_lot` and `tables` are resident memory,
/// or memory from `malloc` that has been written to, and do not overlap. Their sum, and the page
/// tables, are what virtual threads cost the machine; a program's own data on the heap comes on
/// top. Where a number is an estimate, it says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Address space set aside for stacks and their guards. It costs nothing by itself.
    pub stacks_reserved: u64,
    /// Resident memory of the slots that virtual threads have: stacks, thread-locals, thread
    /// control blocks. An estimate from 4,096 slots if there are more.
    pub stacks: u64,
    /// Resident memory of free slots, kept for the next threads, or not given back yet: that takes
    /// a second of idleness. An estimate like `stacks`.
    pub stacks_cached: u64,
    /// The part of `stacks` that is thread-locals of the program and of its libraries, and glibc's
    /// data about the thread.
    pub tls: u64,
    /// The runtime's records of threads, with their closures and results; those of ended threads
    /// that are kept for the next ones included.
    pub records: u64,
    /// The heaps of timers.
    pub timers: u64,
    /// The table of threads that wait for locks and condition variables.
    pub parking_lot: u64,
    /// The tables of slots and descriptors.
    pub tables: u64,
    /// Page tables of the whole process (`VmPTE`). They are not part of its resident memory.
    pub page_tables: u64,
    /// Resident memory of the whole process (`VmRSS`).
    pub process: u64,
    /// Memory of the whole process that is on a swap device (`VmSwap`).
    pub swapped: u64,
}

impl Memory {
    /// Returns the resident memory of virtual threads: all parts that do not overlap.
    pub fn resident(&self) -> u64 {
        self.stacks
            + self.stacks_cached
            + self.records
            + self.timers
            + self.parking_lot
            + self.tables
    }

    /// Returns all numbers, each with its name.
    pub fn by_kind(&self) -> [(&'static str, u64); 11] {
        [
            ("stacks_reserved", self.stacks_reserved),
            ("stacks", self.stacks),
            ("stacks_cached", self.stacks_cached),
            ("tls", self.tls),
            ("records", self.records),
            ("timers", self.timers),
            ("parking_lot", self.parking_lot),
            ("tables", self.tables),
            ("page_tables", self.page_tables),
            ("process", self.process),
            ("swapped", self.swapped),
        ]
    }

    /// Finds it out for the process, with `slots` slots in use. Asks the kernel about `most` slots.
    pub(super) fn of(runtime: &Runtime, slots: u64, most: usize) -> Memory {
        let (reserved, region_tables) = census::reserved();
        let stacks = census::resident(most, table::is_resident);
        let (_, timers) = runtime.timers.census();
        let (_, descriptor_table) = fds::census();
        let tables = region_tables + table::bytes() + descriptor_table;
        let mut buffer = [0; 4096];
        let status = sys::read_file(c"/proc/self/status", &mut buffer).unwrap_or(&[]);
        let status = core::str::from_utf8(status).unwrap_or("");
        let bytes = |name| meminfo(status, name).unwrap_or(0) << 10;
        Memory {
            stacks_reserved: reserved as u64,
            stacks: stacks.used,
            stacks_cached: stacks.free,
            tls: slots * tls::template().bytes_touched() as u64,
            records: magazines::bytes() as u64,
            timers: timers as u64,
            parking_lot: parking_lot::bytes() as u64,
            tables: tables as u64,
            page_tables: bytes("VmPTE:"),
            process: bytes("VmRSS:"),
            swapped: bytes("VmSwap:"),
        }
    }
}
