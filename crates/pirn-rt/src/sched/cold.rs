//! Writing the stacks of threads that have been parked for long to swap.
//!
//! A platform thread of its own looks at all threads once per period. It marks those that wait; a
//! mark that it finds again at the next look means that the thread has not run since, and the
//! kernel is asked to page out that thread's slot. So a thread's stack goes out after it has been
//! parked for one to two periods. The threads themselves do nothing for it, and a thread that is
//! woken meanwhile only reads its pages back.

use crate::notices;
use crate::stack::region::{self, BATCH};
use crate::stack::{Slot, memory};
use crate::sys;
use crate::vthread::record::Core;
use crate::vthread::start_helper;
use crate::vthread::table;
use core::ops::Range;
use std::io;

/// Starts the platform thread that pages out threads which have been parked for `seconds`; 0: none.
pub fn start(seconds: u64) -> io::Result<()> {
    if seconds == 0 {
        return Ok(());
    }
    if !has_swap() {
        notices::write(
            "PIRN_SWAP_COLD has no effect as long as this machine has no swap (`swapon` a file, a \
             partition or a zram device)",
        );
    }
    start_helper("pirn-cold", 64 << 10, move || run(seconds))
}

fn run(seconds: u64) {
    loop {
        sys::nap(seconds * 1_000_000_000);
        if has_swap() {
            sweep();
        }
    }
}

/// Returns whether the kernel has anywhere to page out to.
fn has_swap() -> bool {
    let mut buffer = [0; 2048];
    memory::read_file(c"/proc/meminfo", &mut buffer).is_some_and(swap_total)
}

/// Returns whether the text of `/proc/meminfo` names any swap.
fn swap_total(meminfo: &str) -> bool {
    memory::meminfo(meminfo, "SwapTotal:").is_some_and(|kib| kib > 0)
}

/// Pages out the slots of threads that have been parked since the last sweep. Returns how many.
pub fn sweep() -> usize {
    let mut batch = Batch::new();
    region::for_each_open(|slot| {
        if table::look(slot, Core::mark_waiting) == Some(true) {
            batch.add(slot);
        }
    });
    batch.page_out();
    batch.all
}

/// Slots for one system call.
struct Batch {
    ranges: [Range<usize>; BATCH],
    len: usize,
    /// The number of slots added so far.
    all: usize,
}

impl Batch {
    fn new() -> Batch {
        Batch {
            ranges: [const { 0..0 }; BATCH],
            len: 0,
            all: 0,
        }
    }

    fn add(&mut self, slot: Slot) {
        self.ranges[self.len] = slot.bottom()..slot.end();
        self.len += 1;
        self.all += 1;
        if self.len == BATCH {
            self.page_out();
        }
    }

    fn page_out(&mut self) {
        if self.len > 0 {
            region::page_out(self.ranges[..self.len].iter().cloned());
            self.len = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::swap_total;

    #[test]
    fn swap_is_found_in_meminfo() {
        let with =
            |swap| format!("MemTotal: 1 kB\nSwapCached: 7 kB\nSwapTotal:  {swap}\nX: 1 kB\n");
        assert!(swap_total(&with("1234 kB")));
        assert!(!swap_total(&with("0 kB")));
        assert!(!swap_total("MemTotal: 1 kB\n"));
    }
}
