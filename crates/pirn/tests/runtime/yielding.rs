//! A yield gives the core to another OS thread if, and only if, no other virtual thread can run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;
use std::task::Poll;

use crate::common::{child, watched};
use pirn::thread;

/// One carrier, and no spare ones.
const ONE_CARRIER: [(&str, &str); 2] = [("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "0")];

/// Binds the calling thread, and all threads that it starts from now on, to one core.
fn on_one_core() {
    // SAFETY: a zeroed set is an empty one; both calls stay within it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let core = libc::sched_getcpu();
        libc::CPU_SET(core as usize, &mut set);
        let size = std::mem::size_of_val(&set);
        crate::common::sys::check(libc::sched_setaffinity(0, size, &set)).unwrap();
    }
}

/// Returns the number of turns that a constantly yielding platform thread gets on the same core.
fn turns_of_a_platform_thread(meanwhile: impl FnOnce()) -> u64 {
    let (turns, ended) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let other = std::thread::spawn({
        let (turns, ended) = (Arc::clone(&turns), Arc::clone(&ended));
        move || {
            while !ended.load(SeqCst) {
                turns.fetch_add(1, SeqCst);
                std::thread::yield_now();
            }
        }
    });
    while turns.load(SeqCst) == 0 {
        std::thread::yield_now();
    }
    let before = turns.load(SeqCst);
    meanwhile();
    let after = turns.load(SeqCst);
    ended.store(true, SeqCst);
    other.join().unwrap();
    after - before
}

const YIELDS: u64 = 2_000;

#[watched]
fn a_lonely_yield_gives_the_core_to_other_os_threads() {
    child::isolated(&ONE_CARRIER, || {
        on_one_core();
        type Yield = fn();
        for give_way in [thread::yield_now as Yield, std::thread::yield_now] {
            let turns = turns_of_a_platform_thread(|| {
                let yields = move || (0..YIELDS).for_each(|_| give_way());
                thread::spawn(yields).join().unwrap();
            });
            // One turn per yield if the kernel is fair; far less than one per hundred without the
            // hand-over.
            assert!(turns >= YIELDS / 4, "{turns} turns");
        }
    });
}

#[watched]
fn a_yield_between_virtual_threads_does_not_enter_the_kernel() {
    child::isolated(&ONE_CARRIER, || {
        on_one_core();
        let turns = turns_of_a_platform_thread(|| {
            thread::spawn(|| {
                let left = Arc::new(AtomicU64::new(2));
                let yields = |left: Arc<AtomicU64>| {
                    (0..YIELDS).for_each(|_| thread::yield_now());
                    left.fetch_sub(1, SeqCst);
                };
                let other = Arc::clone(&left);
                thread::spawn(move || yields(other));
                yields(left);
            })
            .join()
            .unwrap();
        });
        assert!(turns < YIELDS / 4, "{turns} turns");
    });
}

#[watched]
fn a_rendezvous_with_a_platform_thread_on_one_core_makes_progress() {
    child::isolated(&ONE_CARRIER, || {
        on_one_core();
        let (ask, asked) = mpsc::sync_channel::<u32>(0);
        let (answer, answered) = mpsc::sync_channel::<u32>(0);
        let platform = std::thread::spawn(move || {
            asked.iter().for_each(|n| answer.send(n + 1).unwrap());
        });
        let virtually = thread::spawn(move || {
            for n in 0..1_000 {
                ask.send(n).unwrap();
                assert_eq!(answered.recv(), Ok(n + 1));
            }
        });
        virtually.join().unwrap();
        platform.join().unwrap();
    });
}

#[watched]
fn a_future_that_wakes_itself_does_not_enter_the_kernel() {
    child::isolated(&ONE_CARRIER, || {
        on_one_core();
        let turns = turns_of_a_platform_thread(|| {
            let mut left = YIELDS;
            let future = std::future::poll_fn(move |context| {
                context.waker().wake_by_ref();
                left -= 1;
                if left > 0 {
                    Poll::Pending
                } else {
                    Poll::Ready(())
                }
            });
            thread::spawn(|| pirn::block_on(future)).join().unwrap();
        });
        assert!(turns < YIELDS / 4, "{turns} turns");
    });
}
