//! What works in time leaves no thread behind. Alone in its process, so that it can count all
//! virtual threads.

#[path = "actors/common.rs"]
mod common;

use common::{until, watched};
use pirn_actor as actor;
use std::time::Duration;

#[watched]
fn no_thread_is_left_behind() {
    // Batches have a thread only while they work, and timers only while there are some.
    let batches = actor::flow::batch(10, Duration::from_millis(1), |items: Vec<u32>| items.len());
    assert_eq!(*batches.ask(1).unwrap(), 1);
    until(|| pirn::metrics::snapshot().sum("threads") == 0);
}
