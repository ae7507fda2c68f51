use super::{EAGER_NS, KEEPING_NS, LONGEST_RETRY_NS, RETRY_NS, Watched};
use crate::testing::{few, make_with};
use core::sync::atomic::Ordering::Relaxed;

const SLICE: u64 = 10_000_000;

fn seen_twice(since: u64, computes: bool) -> Watched {
    Watched {
        since,
        computes,
        still: true,
        ..Watched::default()
    }
}

#[test]
fn a_thread_that_was_just_mounted_does_not_keep_a_processor_yet() {
    let watched = seen_twice(5000, false);
    assert_eq!(watched.keeping_from(SLICE), Some(5000 + KEEPING_NS));
}

#[test]
fn short_slices_count_from_their_end() {
    let watched = seen_twice(5000, false);
    assert_eq!(watched.keeping_from(100_000), Some(105_000));
}

#[test]
fn a_thread_that_has_used_up_a_slice_keeps_its_processor_at_once() {
    assert_eq!(seen_twice(5000, true).keeping_from(SLICE), Some(5000));
}

#[test]
fn a_thread_that_was_not_there_at_the_last_look_keeps_nothing() {
    let watched = Watched {
        still: false,
        ..seen_twice(5000, true)
    };
    assert_eq!(watched.keeping_from(SLICE), None);
}

#[test]
fn a_thread_that_does_not_give_way_is_asked_eagerly_at_first_and_seldom_later() {
    let asked = |last_asked| Watched {
        first_asked: 1,
        last_asked,
        ..seen_twice(1, true)
    };
    assert_eq!(Watched::default().may_ask(), 0);
    for last in [1, 1 + EAGER_NS] {
        assert_eq!(asked(last).may_ask(), last + RETRY_NS);
    }
    let last = 1 + EAGER_NS + 8 * RETRY_NS;
    assert_eq!(asked(last).may_ask(), last + 2 * RETRY_NS);
    let last = 1 + EAGER_NS + 100 * LONGEST_RETRY_NS;
    assert_eq!(asked(last).may_ask(), last + LONGEST_RETRY_NS);
}

#[test]
fn a_thread_is_prompt_if_the_one_before_it_gave_way_at_the_first_question() {
    let processor = &make_with(few(1)).processors.all[0];
    processor.holder.store(1, Relaxed);
    let mut watched = Watched::default();
    watched.observe(processor, 1000);
    let mut now = 1000;
    let mut asked = |first_asked, last_asked| {
        (watched.first_asked, watched.last_asked) = (first_asked, last_asked);
        now += 1000;
        processor.tick.fetch_add(1, Relaxed); // The thread is another one than before.
        watched.observe(processor, now);
        watched.is_prompt
    };
    assert!(!asked(0, 0));
    assert!(asked(1000, 1000));
    assert!(asked(0, 0));
    assert!(!asked(1000, 1100));
}

#[test]
fn a_slice_is_over_when_an_eighth_of_it_is_left() {
    let watched = seen_twice(5000, true);
    assert!(!watched.is_nearly_over(800_000, 705_000 - 1));
    assert!(watched.is_nearly_over(800_000, 705_000));
}

/// The processor of a spare carrier that rests does not switch.
#[test]
fn a_processor_without_a_holder_is_kept_by_no_thread() {
    let processor = &make_with(few(1)).processors.all[0];
    let mut watched = Watched::default();
    processor.holder.store(1, Relaxed);
    watched.observe(processor, 1000);
    watched.observe(processor, 2000);
    assert_eq!(watched.keeping_from(SLICE), Some(1000 + KEEPING_NS));
    processor.holder.store(0, Relaxed);
    watched.observe(processor, 3000);
    assert_eq!(watched.keeping_from(SLICE), None);
}
