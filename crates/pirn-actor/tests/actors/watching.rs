//! Values that tell of their changes.

use crate::common::watched;
use pirn::thread;
use pirn_actor::{self as actor, Builder, Change, Composite, MapChange, Watched, WatchedMap};
use std::collections::HashMap;
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

#[watched]
fn the_changes_of_a_map_are_a_chain_per_key() {
    let map = WatchedMap::new();
    let (tell, told) = mpsc::channel();
    let log = Builder::new()
        .unbounded()
        .consumer(move |change: MapChange<u32, u32>| tell.send(change).unwrap());
    let subscription = map.subscribe(&log);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let map = map.clone();
            thread::spawn(move || {
                for n in 0..100 {
                    let key = n % 3;
                    match (thread + n) % 4 {
                        0 => drop(map.remove(&key)),
                        1 => {
                            let seen = map.get(&key);
                            let _ = map.compare_and_set(key, seen.as_ref(), Some(n));
                        }
                        _ => drop(map.insert(key, n)),
                    }
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    // A feed is told by one of those who changed it, and all of them have returned.
    drop(subscription);
    log.close();
    log.join();
    drop(log);
    let mut seen = HashMap::new();
    for change in told.iter() {
        assert_eq!(seen.get(&change.key).copied(), change.old);
        match change.new {
            Some(new) => drop(seen.insert(change.key, new)),
            None => drop(seen.remove(&change.key)),
        }
    }
    assert_eq!(map.entries().into_iter().collect::<HashMap<_, _>>(), seen);
}

#[watched]
fn a_map_can_be_waited_for() {
    let map = WatchedMap::new();
    assert_eq!(map.wait_for_timeout(&1, Duration::from_millis(1)), Ok(None));
    let waiting: Vec<_> = (0..3)
        .map(|key| {
            let map = map.clone();
            thread::spawn(move || map.wait_for(&key).unwrap())
        })
        .collect();
    (0..3).for_each(|key| {
        map.insert(key, key * 10);
    });
    let found: Vec<_> = waiting
        .into_iter()
        .map(|waits| waits.join().unwrap())
        .collect();
    assert_eq!(found, [0, 10, 20]);
    assert_eq!(
        (map.len(), map.remove(&1), map.get(&1)),
        (3, Some(10), None)
    );
    assert_eq!(map.remove(&1), None);
}

#[watched]
fn a_composite_tells_when_all_parts_are_there() {
    let parts = Composite::new(0..4);
    let (tell, told) = mpsc::channel();
    let to = actor::consumer(move |parts| tell.send(parts).unwrap());
    parts.subscribe(&to).detach();
    assert!(parts.set(9, 9).is_err());
    let waiting = {
        let parts = parts.clone();
        thread::spawn(move || parts.wait().unwrap())
    };
    let setters: Vec<_> = (0..4)
        .map(|n| {
            let parts = parts.clone();
            thread::spawn(move || parts.set(n, n * n).unwrap())
        })
        .collect();
    let told_all = setters
        .into_iter()
        .map(|setter| setter.join().unwrap())
        .filter(|is_complete| *is_complete)
        .count();
    assert_eq!(told_all, 1, "by the last one");
    let all: HashMap<_, _> = (0..4).map(|n| (n, n * n)).collect();
    assert_eq!(told.recv().unwrap(), all);
    assert_eq!(waiting.join().unwrap(), all);
    assert_eq!(parts.get(), Some(all));
    assert!(parts.set(0, 5).unwrap());
    assert_eq!(told.recv().unwrap()[&0], 5);
}
