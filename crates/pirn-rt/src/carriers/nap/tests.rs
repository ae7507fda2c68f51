use super::nap::nap;
use crate::reactor::epoll;
use crate::sched::Runtime;
use crate::testing;
use crate::time::Deadline;

/// Makes a runtime without carriers, whose processors so seem to be held.
fn make() -> &'static Runtime {
    testing::make_with(testing::few(2))
}

fn reports_events(runtime: &Runtime) -> bool {
    let mut buffer = epoll::buffer();
    let fetched = runtime.poller.fetch(&mut buffer, Deadline::PASSED);
    !fetched.is_empty()
}

#[test]
fn a_nap_ends_if_the_others_stand_still() {
    assert!(!nap(make(), Deadline::NEVER));
}

#[test]
fn a_kick_ends_one_nap_even_if_it_comes_before_and_epoll_has_reported_it() {
    let runtime = make();
    runtime.poller.kick();
    assert!(reports_events(runtime));
    assert!(nap(runtime, Deadline::NEVER));
    assert!(!nap(runtime, Deadline::NEVER));
}

#[test]
fn kicks_that_a_nap_has_taken_do_not_keep_epoll_from_reporting_later_ones() {
    let runtime = make();
    runtime.poller.kick();
    runtime.poller.kick();
    assert!(nap(runtime, Deadline::NEVER));
    reports_events(runtime);
    runtime.poller.kick();
    assert!(reports_events(runtime));
}

#[test]
fn no_carrier_naps_when_all_processors_are_idle() {
    let runtime = make();
    for processor in runtime.processors.used() {
        runtime.idle.release(processor, || false);
    }
    runtime.poller.kick();
    assert!(!nap(runtime, Deadline::NEVER));
}

#[test]
fn a_deadline_within_the_first_nap_is_left_to_epoll() {
    let runtime = make();
    runtime.poller.kick();
    assert!(!nap(runtime, Deadline::after_nanos(1)));
}
