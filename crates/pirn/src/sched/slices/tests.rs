use super::{KEEPING_NS, Watched};

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
fn a_thread_that_has_just_begun_its_turn_does_not_keep_a_processor_yet() {
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
