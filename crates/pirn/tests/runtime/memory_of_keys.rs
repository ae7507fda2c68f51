//! The cost of keys, and of thread-locals with destructors, for a virtual thread: no additional
//! page.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use crate::common::memory::resident;
use crate::common::{child, fewer, many, virtual_crowd, watched};
use pirn::thread;

/// Returns the memory of `count` threads that have run `body` and are parked.
fn memory_of_parked(count: usize, body: fn()) -> usize {
    let before = resident();
    let here = Arc::new((AtomicUsize::new(0), std::thread::current()));
    let over = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let (here, over) = (Arc::clone(&here), Arc::clone(&over));
            thread::spawn(move || {
                body();
                if here.0.fetch_add(1, SeqCst) + 1 == count {
                    here.1.unpark();
                }
                while !over.load(SeqCst) {
                    thread::park();
                }
            })
        })
        .collect();
    while here.0.load(SeqCst) < count {
        std::thread::park();
    }
    let used = resident().saturating_sub(before);
    over.store(true, SeqCst);
    threads.iter().for_each(|handle| handle.thread().unpark());
    threads
        .into_iter()
        .for_each(|handle| handle.join().unwrap());
    used
}

struct HasDestructor(Cell<u8>);
impl Drop for HasDestructor {
    fn drop(&mut self) {
        std::hint::black_box(self.0.get());
    }
}
thread_local! {
    static DROPPED: HasDestructor = const { HasDestructor(Cell::new(0)) };
}

#[watched]
fn thread_locals_with_destructors_cost_no_page() {
    const COUNT: usize = 10_000;
    // Each in a process of its own, where no slot has been used before.
    let measure = |which: &str| {
        let output = child::run(&[("PIRN_TEST_BODY", which)]);
        assert!(output.status.success(), "{}", child::report(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let number = text.split("bytes each: ").nth(1).unwrap();
        number.lines().next().unwrap().parse::<usize>().unwrap()
    };
    if child::is_here() {
        let body = match std::env::var("PIRN_TEST_BODY").unwrap().as_str() {
            "plain" => || (),
            _ => || {
                DROPPED.with(|dropped| dropped.0.set(1));
                let _ = std::thread::current(); // its guard is a key
            },
        };
        println!("bytes each: {}", memory_of_parked(COUNT, body) / COUNT);
        return;
    }
    let (plain, with) = (measure("plain"), measure("destructor"));
    assert!(with < plain + 1024, "{with} bytes each, {plain} without");
}

#[watched]
fn values_leave_nothing_behind() {
    child::isolated(&[], || {
        let mut key = 0;
        while key < 1000 {
            // SAFETY: `key` is valid for writes.
            assert_eq!(unsafe { libc::pthread_key_create(&mut key, None) }, 0);
        }
        let round = || {
            virtual_crowd(|i| {
                // SAFETY: the key exists; its values are never used.
                let error =
                    unsafe { libc::pthread_setspecific(key, ptr::without_provenance(i + 1)) };
                assert_eq!(error, 0);
            });
        };
        round();
        let before = resident();
        let mut threads = 0;
        while threads < fewer(20_000) {
            round();
            threads += many();
        }
        // The values up to that key's take 16 KiB.
        let more = resident().saturating_sub(before);
        assert!(more < threads * 4096, "{more} bytes for {threads} threads");
    });
}
