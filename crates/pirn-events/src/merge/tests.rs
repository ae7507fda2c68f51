use super::*;
use crate::awaited::Awaited;
use crate::recording::{Clocks, Recording};
use crate::timeline::Why;

/// Nanoseconds are stamps.
fn stamps() -> Stamps {
    Stamps::new(&Recording {
        clocks: vec![Clocks::default()],
        ..Recording::default()
    })
}

fn raw(stamp: u64, thread: u64, what: What) -> Raw {
    Raw {
        stamp,
        thread,
        what,
    }
}

fn mount(next: u64) -> What {
    let why = Why::Mount;
    What::Switch { why, next }
}

fn park() -> What {
    let why = Why::Park(Awaited(0));
    What::Switch { why, next: 0 }
}

fn merged(rows: &[&[Raw]]) -> Vec<(u64, usize, What)> {
    let rows = rows.iter().map(|row| row.to_vec()).collect();
    let events = merge(rows, &stamps());
    events.iter().map(|e| (e.time, e.row, e.what)).collect()
}

#[test]
fn events_are_in_order() {
    let one = [raw(10, 0, mount(1)), raw(40, 1, park())];
    let other = [raw(20, 0, mount(2)), raw(30, 2, park())];
    let expected = [
        (10, 0, mount(1)),
        (20, 1, mount(2)),
        (30, 1, park()),
        (40, 0, park()),
    ];
    assert_eq!(merged(&[&one, &other]), expected);
}

#[test]
fn a_thread_leaves_one_carrier_before_it_is_on_the_next() {
    let one = [raw(10, 0, mount(1)), raw(50, 1, park())];
    let other = [raw(45, 0, mount(1)), raw(46, 1, park())];
    let expected = [
        (10, 0, mount(1)),
        (50, 0, park()),
        (51, 1, mount(1)),
        (51, 1, park()),
    ];
    assert_eq!(merged(&[&one, &other]), expected);
}

#[test]
fn events_with_one_stamp_are_spread_behind_it() {
    let row = [
        raw(1000, 0, mount(1)),
        raw(1000, 1, park()),
        raw(1000, 0, mount(2)),
        raw(9000, 2, park()),
    ];
    let times: Vec<_> = merged(&[&row]).iter().map(|event| event.0).collect();
    assert_eq!(times, [1000, 1128, 1256, 9000]);
    let close = [
        raw(1000, 0, mount(1)),
        raw(1000, 1, park()),
        raw(1020, 0, mount(2)),
    ];
    let times: Vec<_> = merged(&[&close]).iter().map(|event| event.0).collect();
    assert_eq!(times, [1000, 1010, 1020]);
}

/// A recording with contradictions gives some order; nothing is lost, nothing loops.
#[test]
fn contradictions_lose_nothing() {
    let one = [
        raw(10, 0, mount(1)),
        raw(20, 1, What::Wake(2)),
        raw(90, 1, mount(2)),
    ];
    let other = [
        raw(11, 0, mount(2)),
        raw(12, 2, mount(1)),
        raw(13, 1, mount(2)),
    ];
    assert_eq!(merged(&[&one, &other]).len(), 6);
}
