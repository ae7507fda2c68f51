//! Runnable threads take turns, however many they are. Turns are counted, not timed.

use std::hint;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::common::{child, sys, watched};
use pirn::thread;

/// The turns that all threads together have had.
static TURNS: AtomicUsize = AtomicUsize::new(0);

/// Takes this many turns, each after a call of `wait`. Returns the most turns of others between two
/// of the caller's own.
fn longest_wait(turns: usize, mut wait: impl FnMut()) -> usize {
    let mut longest = 0;
    let mut last = TURNS.fetch_add(1, Relaxed);
    for _ in 1..turns {
        wait();
        let now = TURNS.fetch_add(1, Relaxed);
        longest = longest.max(now - last - 1);
        last = now;
    }
    longest
}

/// Runs `count` threads that take turns on one carrier, and asserts that none waits for much more
/// than one turn of each of the others, as often as it may wait between two turns.
fn take_turns(count: usize, waits: usize, thread: impl Fn(usize) -> usize + Sync) {
    let thread = &thread;
    let longest = thread::scope(|scope| {
        let crowd: Vec<_> = (0..count).map(|i| scope.spawn(move || thread(i))).collect();
        let longest = crowd.into_iter().map(|thread| thread.join().unwrap());
        longest.max().unwrap()
    });
    assert!(
        longest < (waits + 1) * count,
        "{longest} turns of {count} threads"
    );
}

/// Without preemption: a thread whose slice ends between two turns waits once more.
fn on_one_carrier(body: impl FnOnce() + Send + 'static) {
    let one = [
        ("PIRN_PARALLELISM", "1"),
        ("PIRN_SPARE_CARRIERS", "0"),
        ("PIRN_PREEMPT", "0"),
    ];
    child::isolated(&one, || thread::spawn(body).join().unwrap());
}

#[watched]
fn a_thousand_threads_that_yield_take_turns() {
    on_one_carrier(|| take_turns(1000, 1, |_| longest_wait(100, thread::yield_now)));
}

/// Threads from outside wait in a queue of their own.
#[watched]
fn threads_from_outside_take_turns_with_those_that_yield() {
    const OUTSIDE: usize = 3000;
    let one = [("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")];
    child::isolated(&one, || {
        let ended = &AtomicUsize::new(0);
        let all_there = &AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    while !all_there.load(Relaxed) {
                        hint::spin_loop();
                    }
                    while ended.load(Relaxed) < OUTSIDE {
                        TURNS.fetch_add(1, Relaxed);
                        thread::yield_now();
                    }
                });
            }
            for _ in 0..OUTSIDE {
                scope.spawn(|| ended.fetch_add(1, Relaxed));
            }
            all_there.store(true, Relaxed);
        });
        let turns = TURNS.load(Relaxed);
        assert!(turns < 10 * OUTSIDE, "{turns} turns");
    });
}

/// Each waits for an event before its turn, and causes one for itself. On a busy machine the kernel
/// delivers what was written only later, so the read may wait, too.
#[watched]
fn threads_that_wait_for_events_take_turns() {
    on_one_carrier(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = |_| {
            let near = TcpStream::connect(address).unwrap();
            (near, listener.accept().unwrap().0)
        };
        let pairs: Vec<_> = (0..(sys::raise_file_limit() / 8).min(600))
            .map(connect)
            .collect();
        take_turns(pairs.len(), 2, |i| {
            let (mut near, mut far) = (&pairs[i].0, &pairs[i].1);
            longest_wait(50, || {
                near.write_all(b"x").unwrap();
                assert_eq!(far.read(&mut [0; 2]).unwrap(), 1);
                thread::yield_now();
            })
        });
    });
}
