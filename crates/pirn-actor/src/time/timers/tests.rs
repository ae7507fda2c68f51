//! Tests of the timers. They share the timers' thread, and run at the same time.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn timers_are_done_in_the_order_of_their_times() {
    let (begun, begins) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    after(Duration::ZERO, move || {
        begun.send(()).unwrap();
        let _ = released.recv();
    });
    begins.recv().unwrap(); // the timers' thread is busy
    let (tell, told) = mpsc::channel();
    let start = Instant::now();
    for n in [3, 1, 0, 2] {
        let tell = tell.clone();
        at(start + n * Duration::from_micros(10), move |_| {
            tell.send(n).unwrap();
            None
        });
    }
    drop((tell, release));
    assert!(told.iter().eq([0, 1, 2, 3]));
}

#[test]
fn a_timer_that_is_made_while_the_keeper_leaves_is_done() {
    // A thread without timers leaves after 1 ms.
    for micros in 0..300 {
        let (tell, told) = mpsc::channel();
        after(Duration::ZERO, move || tell.send(()).unwrap());
        told.recv().unwrap();
        std::thread::sleep(REST.saturating_sub(Duration::from_micros(20)));
        std::thread::sleep(Duration::from_micros(micros % 40));
    }
}

#[test]
fn cancelled_timers_take_no_memory() {
    let held = Arc::new(());
    for _ in 0..100 {
        let made: Vec<_> = (0..1_000)
            .map(|_| {
                let held = Arc::clone(&held);
                at(Instant::now() + HOUR, move |_| {
                    let _ = &held;
                    None
                })
            })
            .collect();
        assert_eq!(Arc::strong_count(&held), 1_001);
        assert!(made.iter().all(TimerHandle::cancel));
        assert_eq!(Arc::strong_count(&held), 1);
        let timers = locked(&TIMERS);
        assert!(
            made.iter()
                .all(|timer| !timers.all.contains_key(&timer.number))
        );
        assert!(timers.all.len() < 1_000 && timers.queue.len() < 1_000);
    }
}

#[test]
fn a_panic_concerns_no_other_timer() {
    struct Fragile;
    impl Drop for Fragile {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    after(Duration::ZERO, || panic!("called"));
    let fragile = Fragile;
    at(Instant::now(), move |_| {
        let _ = &fragile;
        None
    });
    let (tell, told) = mpsc::channel();
    after(Duration::from_millis(1), move || tell.send(()).unwrap());
    told.recv().unwrap();
}

#[test]
fn a_timer_that_is_cancelled_while_it_is_done_is_not_done_again() {
    for _ in 0..200 {
        let (begun, begins) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let done = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&done);
        let timer = at(Instant::now(), move |due| {
            counts.fetch_add(1, Ordering::SeqCst);
            begun.send(()).unwrap();
            let _ = released.recv();
            Some(due)
        });
        begins.recv().unwrap();
        assert!(timer.cancel());
        assert!(!timer.cancel());
        assert!(timer.is_over());
        drop(release);
        // The thread has passed it.
        let (tell, told) = mpsc::channel();
        after(Duration::ZERO, move || tell.send(()).unwrap());
        told.recv().unwrap();
        assert_eq!(done.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_resting_timer_may_be_called_before_it_rests() {
    let (tell, told) = mpsc::channel();
    let mut left = 100;
    let act = move |number, _| {
        again(number, Instant::now()); // as a very fast receiver does
        left -= 1;
        tell.send(left).unwrap();
        if left == 0 { Next::Over } else { Next::Resting }
    };
    add(Instant::now(), Box::new(act));
    assert!(told.iter().eq((0..100).rev()));
}

#[test]
fn timers_made_and_cancelled_by_many_threads_are_done_or_cancelled_once() {
    let threads: Vec<_> = (0..4)
        .map(|thread: u64| {
            std::thread::spawn(move || {
                for n in 0..500 {
                    let done = Arc::new(AtomicBool::new(false));
                    let (tell, told) = mpsc::channel();
                    let sets = Arc::clone(&done);
                    let due = Instant::now() + Duration::from_micros((thread * 7 + n) % 50);
                    let timer = at(due, move |_| {
                        assert!(!sets.swap(true, Ordering::SeqCst));
                        let _ = tell.send(());
                        None
                    });
                    if n % 2 == 0 {
                        std::thread::yield_now();
                        let is_cancelled = timer.cancel();
                        // Either it comes, or it is gone, with its channel.
                        assert!(told.recv().is_ok() || is_cancelled);
                    } else {
                        told.recv().unwrap();
                    }
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}
