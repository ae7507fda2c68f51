//! Where programs may not set the thread pointer by an instruction, a system call does it.

use crate::common::{child, watched};
use pirn::thread;
use std::cell::Cell;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

const SETTINGS: [[(&str, &str); 2]; 2] = [
    [("PIRN_NO_FSGSBASE", "1"), ("PIRN_PARALLELISM", "1")],
    [("PIRN_NO_FSGSBASE", "1"), ("PIRN_PARALLELISM", "4")],
];

fn thread_locals_stay_with_their_threads() {
    thread_local!(static OWN: Cell<usize> = const { Cell::new(0) });
    let threads: Vec<_> = (1..100)
        .map(|i| {
            thread::spawn(move || {
                OWN.set(i);
                for round in 0..20 {
                    match round % 2 {
                        0 => thread::yield_now(),
                        _ => thread::sleep(Duration::from_micros(10)),
                    }
                    assert_eq!(OWN.get(), i);
                }
                i
            })
        })
        .collect();
    let sum: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
    assert_eq!(sum, 99 * 50);
    assert_eq!(OWN.get(), 0);
}

#[watched]
fn threads_switch_by_a_system_call() {
    child::isolated_each(SETTINGS, || {
        thread_locals_stay_with_their_threads();
        let (give, take) = sync_channel(0);
        let giver = thread::spawn(move || (0..1000).for_each(|i| give.send(i).unwrap()));
        assert_eq!(take.iter().sum::<u32>(), 499_500);
        giver.join().unwrap();
        let thrown = thread::spawn(|| catch_unwind(|| panic!("thrown")).is_err());
        assert!(thrown.join().unwrap());
    });
}

#[watched]
fn calls_on_the_carrier_find_their_way_back() {
    thread_local!(static OWN: Cell<usize> = const { Cell::new(0) });
    child::isolated_each(SETTINGS, || {
        thread::spawn(|| {
            OWN.set(7);
            // libc starts a thread with the carrier's thread pointer.
            let started = std::thread::spawn(|| OWN.get());
            assert_eq!(OWN.get(), 7);
            assert_eq!(started.join().unwrap(), 0);
        })
        .join()
        .unwrap();
    });
}

#[watched]
fn threads_that_compute_give_way() {
    let settings = SETTINGS.map(|[how, number]| [how, number, ("PIRN_SPARE_CARRIERS", "0")]);
    child::isolated_each(settings, || {
        static STOP: AtomicBool = AtomicBool::new(false);
        let hogs: Vec<_> = (0..8)
            .map(|_| {
                thread::spawn(|| {
                    while !STOP.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                })
            })
            .collect();
        let other = thread::spawn(|| {
            (0..10).for_each(|_| thread::sleep(Duration::from_millis(1)));
            STOP.store(true, Relaxed);
        });
        other.join().unwrap();
        hogs.into_iter().for_each(|hog| hog.join().unwrap());
        assert!(pirn::metrics::snapshot()["preemptions"] > 0);
    });
}
