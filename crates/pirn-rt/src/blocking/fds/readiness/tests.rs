use super::super::waiters::{FdWaiters, FdWakes};
use super::*;
use crate::blocking::list::STEPS;
use crate::vthread::awaited::{Awaited, Kind};

const MANY: usize = 10_000;

#[test]
fn an_event_costs_no_walk_along_all_who_wait_for_it() {
    let waits: Vec<Wait> = (0..2 * MANY)
        .map(|_| Wait::new(Awaited::new(Kind::Poll, 1)))
        .collect();
    let doer = |(i, wait)| match i % 2 {
        0 => FdWaiter::doer(wait, Interest::Read),
        _ => FdWaiter::doer(wait, Interest::Write),
    };
    let crowd: Vec<FdWaiter> = waits.iter().enumerate().map(doer).collect();
    let mut waiters = FdWaiters::new();
    for waiter in &crowd {
        // SAFETY: the crowd stays until the end.
        unsafe { waiters.append(waiter) };
    }
    let before = STEPS.get();
    for i in 0..MANY {
        let mut wakes = FdWakes::new();
        for interest in [Interest::Read, Interest::Write] {
            waiters.claim_doer(interest, &mut wakes);
        }
        waiters.claim_observers(true, true, &mut wakes);
        // The first two, and nobody else.
        assert_eq!(wakes.perform(), 2);
        for wait in &waits[2 * i..2 * i + 2] {
            assert!(wait.claim(Outcome::Ready).is_none());
        }
    }
    assert!(STEPS.get() - before <= 2 * MANY);
    assert!(waiters.doers.iter().all(|list| list.is_empty()));
}
