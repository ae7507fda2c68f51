use super::*;
use crate::carriers::search::look;
use crate::sched;
use crate::sched::runtime::{Runtime, RuntimeSettings};
use crate::testing;

const SLICE: u64 = 10_000_000;

/// Makes a runtime without carriers.
fn make() -> &'static Runtime {
    testing::make_with(RuntimeSettings {
        slice_ns: SLICE,
        ..testing::few(1)
    })
}

/// Makes a thread that is ready to run.
fn ready(runtime: &'static Runtime) -> Ready {
    testing::ready(runtime, || ()).1
}

fn id(thread: &Ready) -> u64 {
    thread.core().id()
}

#[test]
fn a_thread_that_was_to_be_next_is_not_lost_to_an_urgent_one() {
    let runtime = make();
    let acquired = testing::hold(runtime);
    let processor = acquired.holder();
    let (first, second, urgent) = (ready(runtime), ready(runtime), ready(runtime));
    let (computing, ids) = (ready(runtime), [id(&first), id(&second)]);
    let mut others = vec![id(&urgent), id(&computing)];
    runtime.preempted.push_urgent(urgent);
    runtime.preempted.put_aside(computing, SLICE, false, true);
    let mut ran = Vec::new();
    processor.count();
    processor.enqueue(first);
    processor.enqueue(second);
    // A leaving thread cannot hand over to one without a stack. Then the carrier looks around, and
    // the next thread leaves in turn.
    for _ in 0..4 {
        assert!(processor.next_to_hand_over().is_none());
        let thread = look(processor).expect("a thread is lost");
        ran.push(id(&thread));
        sched::abandon(thread);
    }
    others.extend(ids);
    others.sort_unstable();
    assert_eq!(ran[0], others[2], "the urgent one comes first");
    ran.sort_unstable();
    assert_eq!(ran, others);
}

#[test]
fn a_thread_interrupted_in_its_first_slice_limits_the_one_that_runs() {
    let runtime = make();
    let queues = &runtime.preempted;
    assert_eq!(queues.limit(false, false, 1), None);
    queues.put_aside(ready(runtime), SLICE / 2, false, false);
    assert_eq!(queues.limit(false, false, 1), Some(SLICE));
    sched::abandon(testing::hold(runtime).holder().take_preferred().unwrap());
    assert_eq!(queues.limit(false, false, 1), None);
}

#[test]
fn a_computing_thread_comes_back_to_the_front_if_interrupted_and_else_to_the_back() {
    let runtime = make();
    let queues = &runtime.preempted;
    let [one, two, three] = [ready(runtime), ready(runtime), ready(runtime)];
    let expected = [id(&three), id(&one), id(&two)];
    queues.put_aside(one, SLICE, false, true);
    queues.put_aside(two, SLICE + 1, true, false);
    queues.put_aside(three, SLICE / 2, true, false);
    assert!(queues.any());
    let acquired = testing::hold(runtime);
    let processor = acquired.holder();
    for (place, expected) in expected.into_iter().enumerate() {
        let thread = processor.take_computing().unwrap();
        assert_eq!(id(&thread), expected);
        let tick = processor.tick.load(Relaxed);
        let slice = processor.request.resumed(tick).unwrap();
        assert!(slice.computes);
        let elapsed = sys::now() - slice.since;
        assert!(elapsed >= if place == 0 { SLICE / 2 } else { 0 });
        sched::abandon(thread);
    }
    assert!(!queues.any());
}

#[test]
fn threads_interrupted_in_their_first_slice_go_on_before_all_but_the_urgent_in_order() {
    let runtime = make();
    let queues = &runtime.preempted;
    let acquired = testing::hold(runtime);
    let processor = acquired.holder();
    let [one, two, computing, queued, urgent] = [(); 5].map(|()| ready(runtime));
    let expected = [&urgent, &one, &two, &computing].map(id);
    queues.put_aside(computing, SLICE, true, true);
    queues.last.store(0, Relaxed); // long ago
    queues.put_aside(one, SLICE / 2, false, false);
    queues.put_aside(two, SLICE / 4, false, false);
    queues.push_urgent(urgent);
    processor.enqueue(queued);
    for expected in expected {
        let thread = look(processor).expect("a thread is lost");
        assert_eq!(id(&thread), expected);
        sched::abandon(thread);
    }
}

#[test]
fn slices_shrink_as_more_threads_share() {
    let queues = &make().preempted;
    assert_eq!(queues.limit(false, false, 2), None, "no thread waits");
    assert_eq!(queues.limit(false, true, 2), Some(SLICE));
    assert_eq!(queues.limit(true, true, 2), Some(SHORT_NS));
    let fill = |count: usize| {
        for _ in 0..count {
            let runtime = make();
            queues.put_aside(ready(runtime), SLICE, true, true);
        }
    };
    fill(2);
    assert_eq!(queues.limit(true, false, 2), Some(SLICE));
    fill(2);
    assert_eq!(queues.limit(true, false, 2), Some(SLICE / 2));
    fill(26);
    assert_eq!(queues.limit(false, false, 2), Some(SHORT_NS));
}
