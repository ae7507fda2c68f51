//! Several runtimes in one process.

use crate::testing::{few, make_with, spawn};
use core::ptr;
use pirn_rt::blocking::pool::bounded;
use pirn_rt::no_suspend::NoSuspend;
use pirn_rt::sched;
use pirn_rt::sched::runtime::{self, Runtime, RuntimeSettings};
use pirn_rt::vthread::wait_reason::WaitReason;
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

/// Makes a second runtime, without carriers.
fn make(parallelism: usize) -> &'static Runtime {
    make_with(RuntimeSettings {
        spares: 1,
        spin_ns: 20_000,
        max_blocking_threads: 200,
        ..few(parallelism)
    })
}

fn start(parallelism: usize) -> &'static Runtime {
    let runtime = make(parallelism);
    pirn_rt::carriers::start(runtime).unwrap();
    runtime
}

/// Panics unless the running thread is carried by `runtime`.
#[track_caller]
fn assert_on(runtime: &Runtime) {
    let section = NoSuspend::new();
    let carrier = sched::carrier(&section).expect("a virtual thread");
    assert!(ptr::eq(carrier.runtime(), runtime));
    if let Some(processor) = carrier.processor() {
        assert!(ptr::eq(processor.runtime(), runtime));
    }
    assert!(ptr::eq(runtime::current().unwrap(), runtime));
}

#[test]
fn threads_of_two_runtimes_wake_each_other_and_stay_at_home() {
    const ROUNDS: usize = 2000;
    let (one, two) = (start(1), start(3));
    let (ask, asked) = mpsc::sync_channel(1);
    let (answer, answered) = mpsc::sync_channel(1);
    let server = spawn(two, move || {
        for question in asked {
            assert_on(two);
            answer.send(2 * question).unwrap();
        }
    });
    let client = spawn(one, move || {
        for question in 0..ROUNDS {
            ask.send(question).unwrap();
            assert_eq!(answered.recv(), Ok(2 * question));
            assert_on(one);
        }
    });
    client.join().unwrap();
    server.join().unwrap();
}

#[test]
fn each_runtime_has_timers_and_a_pool() {
    let handles = [start(1), start(2)].map(|runtime| {
        spawn(runtime, move || {
            let began = Instant::now();
            std::thread::sleep(Duration::from_millis(5));
            assert!(began.elapsed() >= Duration::from_millis(5));
            assert_on(runtime);
            let this = std::fs::metadata(std::env::current_exe().unwrap());
            assert!(this.unwrap().len() > 0);
            assert_on(runtime);
        })
    });
    for handle in handles {
        handle.join().unwrap();
    }
}

#[test]
fn what_a_thread_spawns_belongs_to_its_runtime() {
    let runtime = start(2);
    let parent = spawn(runtime, move || {
        let children = [(); 100].map(|()| {
            crate::thread::spawn(move || {
                crate::thread::yield_now();
                assert_on(runtime);
            })
        });
        for child in children {
            child.join().unwrap();
        }
    });
    parent.join().unwrap();
}

#[test]
fn a_runtime_without_carriers_keeps_its_threads_in_its_own_queue() {
    let (one, two) = (make(1), make(1));
    let _never = [(); 3].map(|()| spawn(one, || ()));
    assert_eq!((one.injector.len(), two.injector.len()), (3, 0));
    let first = one.injector.pop(1, |_| unreachable!()).unwrap();
    sched::abandon(first);
    assert_eq!(one.injector.len(), 2);
    // No carrier holds a processor, and threads of one runtime wake none of the other's.
    assert_eq!((one.idle.count(), two.idle.count()), (0, 0));
    assert!(!one.idle.is_requested() && !two.idle.is_requested());
}

/// Spawns threads that offload calls, and waits for them.
fn offload_from(
    runtime: &'static Runtime,
    callers: usize,
    calls: usize,
    call: impl Fn() + Clone + Send + 'static,
) {
    let handles = Vec::from_iter((0..callers).map(|_| {
        let call = call.clone();
        spawn(runtime, move || {
            (0..calls).for_each(|_| bounded(WaitReason::call(c"test"), &call))
        })
    }));
    for handle in handles {
        handle.join().unwrap();
    }
}

#[test]
fn each_of_many_blocked_calls_gets_a_pool_thread() {
    const CALLS: usize = 100;
    let runtime = start(2);
    let barrier = Arc::new(Barrier::new(CALLS));
    // The second round finds the threads of the first.
    offload_from(runtime, CALLS, 2, move || {
        barrier.wait();
    });
    assert!(runtime.pool.threads() >= CALLS);
}
