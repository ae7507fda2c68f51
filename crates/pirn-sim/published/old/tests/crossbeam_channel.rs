//! A channel frees a block twice if its receiver goes while senders make that block:
//! RUSTSEC-2025-0024, mended in crossbeam-channel 0.5.15.

use crossbeam_channel::unbounded;
use pirn_sim::Sim;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

/// Notes what is freed twice. It keeps all memory, to know it again.
struct Checking;

static FREED_TWICE: AtomicU32 = AtomicU32::new(0);

const LIVE: u64 = 0x6c69_7665;
const FREED: u64 = 0x6672_6565;

/// Returns the layout with a mark before the block.
fn marked(layout: Layout) -> (Layout, usize) {
    Layout::new::<u64>().extend(layout).unwrap()
}

// SAFETY: blocks are the system's, and are never given out again.
unsafe impl GlobalAlloc for Checking {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (whole, offset) = marked(layout);
        // SAFETY: the mark is in the block, whose size is not 0.
        unsafe {
            let block = System.alloc(whole);
            block.cast::<u64>().write(LIVE);
            block.add(offset)
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the mark, which `alloc` has written.
        let mark = unsafe { block.sub(marked(layout).1).cast::<u64>().replace(FREED) };
        if mark != LIVE {
            FREED_TWICE.fetch_add(1, SeqCst);
        }
    }
}

#[global_allocator]
static CHECKING: Checking = Checking;

#[test]
fn a_block_is_freed_once() {
    let bug = "crossbeam-channel 0.5.14, RUSTSEC-2025-0024";
    published::is_found(bug, Sim::new(), || {
        FREED_TWICE.store(0, SeqCst);
        let (sender, receiver) = unbounded();
        let threads = [1, 2].map(|n| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(n).is_ok())
        });
        drop((sender, receiver));
        threads
            .into_iter()
            .for_each(|it| assert!(it.join().is_ok()));
        assert_eq!(FREED_TWICE.load(SeqCst), 0);
    });
}
