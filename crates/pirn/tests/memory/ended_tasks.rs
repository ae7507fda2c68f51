//! Executors: no memory is kept for tasks that have ended.

use crate::common::checked_alloc::live_bytes;
use crate::common::{on_virtual, watched};
use pirn::executor::ThreadPerTask;
use pirn::thread;

const WAVE: u64 = 20_000;

/// Submits a wave of tasks, and joins them.
fn wave(executor: &ThreadPerTask) -> u64 {
    let tasks: Vec<_> = (0..WAVE)
        .map(|i| executor.submit(move || Box::new(i)).unwrap())
        .collect();
    tasks.into_iter().map(|task| *task.join().unwrap()).sum()
}

#[watched(alone)]
fn a_million_tasks_leave_nothing_behind() {
    on_virtual(|| {
        let executor = ThreadPerTask::new();
        // After this many plain threads the runtime has all the memory it keeps for later ones.
        let threads: Vec<_> = (0..2 * WAVE).map(|_| thread::spawn(|| ())).collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        let before = live_bytes();
        for _ in 0..1_000_000 / WAVE {
            assert_eq!(wave(&executor), WAVE * (WAVE - 1) / 2);
        }
        // The results of these are never asked for.
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
        // The runtime keeps the memory of a wave's threads for later ones, and gives it back after
        // a long idle time. A million tasks that left only 24 bytes each would leave more.
        let kept = live_bytes() - before;
        assert!(kept < 20 << 20, "{kept} bytes are left");
    });
}
