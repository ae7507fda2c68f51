//! The runtime frees memory with the layout with which it was allocated.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::checked_alloc::live_blocks;
use crate::common::{on_virtual, watched};
use pirn::executor::ThreadPerTask;
use pirn::thread;

const BURST: usize = 20_000;

/// Runs `BURST` threads that are all alive at once, with closures of different sizes.
fn burst() {
    let begun = AtomicUsize::new(0);
    let (begun, all) = (&begun, &std::sync::Barrier::new(BURST));
    thread::scope(|scope| {
        for i in 0..BURST {
            let (small, large) = ([i as u8; 40], [i as u64; 30]);
            let body = move |sum: u64| {
                begun.fetch_add(1, Ordering::Relaxed);
                all.wait();
                thread::sleep(Duration::from_micros(i as u64 % 500));
                sum
            };
            match i % 3 {
                0 => drop(scope.spawn(move || body(0))),
                1 => drop(scope.spawn(move || body(small.iter().map(|&b| u64::from(b)).sum()))),
                _ => drop(scope.spawn(move || body(large.iter().sum()))),
            }
        }
    });
    assert_eq!(begun.load(Ordering::Relaxed), BURST);
}

#[watched(alone)]
fn cells_of_a_burst_go_back_to_the_allocator_when_the_process_idles() {
    burst();
    // The cells that processors and the shared cache keep: two magazines of 64 cells per size and
    // place.
    let kept = (BURST / 4) as isize;
    while live_blocks() > kept {
        std::thread::sleep(Duration::from_millis(10)); // The watchdog ends this.
    }
    burst();
}

#[watched(alone)]
fn executors_free_what_they_allocate() {
    on_virtual(|| {
        let executor = ThreadPerTask::new();
        let tasks: Vec<_> = (0..200)
            .map(|i| executor.submit(move || vec![i; 100]).unwrap())
            .collect();
        for (i, task) in tasks.into_iter().enumerate() {
            match i % 3 {
                0 => assert_eq!(task.join().unwrap()[0], i),
                1 => drop(task.cancel()),
                _ => drop(task),
            }
        }
    });
}

#[watched(alone)]
fn scopes_free_what_they_allocate() {
    for _ in 0..100 {
        let sum = pirn::scope::open(|s| {
            let tasks: Vec<_> = (0..50u64)
                .map(|i| s.fork(move || Ok::<_, String>(vec![i; 20])))
                .collect();
            let joined = s.join()?;
            Ok(tasks
                .into_iter()
                .map(|task| task.get(&joined)[0])
                .sum::<u64>())
        });
        assert_eq!(sum.unwrap(), 49 * 50 / 2);
        let failed = pirn::scope::open(|s| {
            s.fork(|| Err::<Vec<u8>, _>(String::from("no")));
            s.fork(|| {
                thread::sleep(Duration::from_millis(1));
                Ok(())
            });
            s.join()?;
            Ok(())
        });
        assert!(failed.is_err());
    }
}

#[watched(alone)]
fn panics_and_thread_locals_free_what_they_allocate() {
    struct Noisy(Vec<u8>);
    impl Drop for Noisy {
        fn drop(&mut self) {
            drop(Box::new(self.0[0]));
        }
    }
    thread_local!(static LOCAL: RefCell<Vec<Noisy>> = const { RefCell::new(Vec::new()) });
    std::panic::set_hook(Box::new(|_| ()));
    let threads: Vec<_> = (0..500u32)
        .map(|i| {
            thread::Builder::new()
                .name(format!("thread {i}"))
                .spawn(move || {
                    LOCAL.with_borrow_mut(|local| local.push(Noisy(vec![i as u8; 50])));
                    thread::yield_now();
                    assert!(i % 2 == 0, "{i} is odd");
                    vec![i; 10]
                })
                .unwrap()
        })
        .collect();
    let ended = threads.into_iter().map(|thread| thread.join());
    assert_eq!(ended.filter(Result::is_err).count(), 250);
    drop(std::panic::take_hook());
}
