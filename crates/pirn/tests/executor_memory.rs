//! Executors: nothing is kept for tasks that have ended.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use common::{on_virtual, watchdog};
use pirn::executor::ThreadPerTask;
use pirn::thread;

/// The bytes allocated by this process.
static ALLOCATED: AtomicIsize = AtomicIsize::new(0);

struct Counting;

// SAFETY: hands on to `System`, and counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as isize, Relaxed);
        // SAFETY: the caller's obligations are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as isize, Relaxed);
        // SAFETY: the caller's obligations are the same.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WAVE: u64 = 20_000;

/// Submits a wave of tasks, and joins them.
fn wave(executor: &ThreadPerTask) -> u64 {
    let tasks: Vec<_> = (0..WAVE)
        .map(|i| executor.submit(move || Box::new(i)).unwrap())
        .collect();
    tasks.into_iter().map(|task| *task.join().unwrap()).sum()
}

#[test]
fn a_million_tasks_leave_nothing_behind() {
    let _watchdog = watchdog();
    on_virtual(|| {
        let executor = ThreadPerTask::new();
        // After as many plain threads the runtime has what it keeps for later ones.
        let threads: Vec<_> = (0..2 * WAVE).map(|_| thread::spawn(|| ())).collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        let before = ALLOCATED.load(Relaxed);
        for _ in 0..1_000_000 / WAVE {
            assert_eq!(wave(&executor), WAVE * (WAVE - 1) / 2);
        }
        // Nobody asks for these.
        for i in 0..WAVE {
            let task = executor.submit(move || Box::new(i)).unwrap();
            if i % 2 == 0 {
                task.cancel();
            }
        }
        executor.shutdown();
        while !executor.is_terminated() {
            thread::yield_now(); // The watchdog ends this.
        }
        // The runtime keeps the memory of a wave's threads for later ones, and gives it back when
        // it has long been idle. A million tasks that left but 24 bytes each would leave more.
        let kept = ALLOCATED.load(Relaxed) - before;
        assert!(kept < 20 << 20, "{kept} bytes are left");
    });
}
