//! Values that tell of their changes.

use crate::common::watched;
use pirn::thread;
use pirn_actor::Builder;
use pirn_flow::watched::{Change, Watched};
use std::sync::mpsc;
use std::time::Duration;

#[watched]
fn the_changes_of_a_watched_value_are_a_chain() {
    let value = Watched::new(0);
    let (tell, told) = mpsc::channel();
    let log = Builder::new()
        .unbounded()
        .consumer(move |change: Change<u32>| tell.send(change).unwrap());
    let _subscription = value.subscribe(&log);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let value = value.clone();
            thread::spawn(move || {
                for n in 0..100 {
                    match n % 3 {
                        0 => drop(value.update(|old| old + 1)),
                        1 => drop(value.set(n)),
                        _ => {
                            let seen = value.get();
                            let _ = value.compare_and_set(&seen, seen + 1);
                        }
                    }
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    value.set(u32::MAX);
    let mut last = 0;
    for change in told.iter() {
        assert_eq!(change.old, last);
        last = change.new;
        if last == u32::MAX {
            break;
        }
    }
}

#[watched]
fn updates_are_not_lost() {
    let value = Watched::new(0);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let value = value.clone();
            thread::spawn(move || {
                (0..200).for_each(|_| {
                    value.update(|n| n + 1);
                })
            })
        })
        .collect();
    assert_eq!(value.wait_until(|n| *n == 800).unwrap(), 800);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[watched]
fn waiting_for_a_value_can_be_limited_and_interrupted() {
    let value = Watched::new(0);
    let short = Duration::from_millis(2);
    assert_eq!(value.wait_until_timeout(short, |n| *n == 1), Ok(None));
    let waiting = {
        let value = value.clone();
        thread::spawn(move || value.wait_until(|n| *n == 1))
    };
    waiting.thread().interrupt();
    assert!(waiting.join().unwrap().is_err());
    let waiting: Vec<_> = (1..=3)
        .map(|wanted| {
            let value = value.clone();
            thread::spawn(move || value.wait_until(move |n| *n >= wanted))
        })
        .collect();
    (1..=3).for_each(|n| {
        value.set(n);
    });
    for waits in waiting {
        assert!(waits.join().unwrap().is_ok());
    }
}

#[watched]
fn a_value_may_be_changed_and_waited_for_while_its_change_is_told() {
    let value = Watched::new(0);
    let next = value.clone();
    let _subscription = value.subscribe_with(move |change| {
        if change.new < 10 {
            next.set(change.new + 1);
        }
    });
    value.set(1);
    assert_eq!(value.wait_until(|n| *n == 10).unwrap(), 10);
}
