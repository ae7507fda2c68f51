//! Signals that are sent to the process, and overflows of stacks. Each check, in C, writes the same
//! as natively.

use crate::shared::as_natively_in;

fn as_natively(check: &str) {
    as_natively_in("tests/c/signals.c", check);
}

#[test]
fn a_thread_that_waits_gets_what_the_first_one_blocks() {
    as_natively("0");
}

#[test]
fn a_thread_that_computes_gets_what_the_first_one_blocks() {
    as_natively("1");
}

#[test]
fn a_pending_signal_is_for_the_first_that_unblocks_it() {
    as_natively("2");
}

#[test]
fn the_first_thread_gets_what_it_does_not_block() {
    as_natively("3");
}

#[test]
fn a_process_without_its_first_thread_can_be_terminated() {
    as_natively("4");
}

#[test]
fn the_first_thread_answers_while_it_waits_for_one_that_asks_it() {
    as_natively("5");
}

#[test]
fn a_handler_from_before_the_first_thread_sees_overflows_of_stacks() {
    as_natively_in("tests/c/overflows.c", "");
}

#[test]
fn signals_that_a_call_raises_for_its_thread_are_that_threads() {
    as_natively_in("tests/c/raised.c", "thread");
}

#[test]
fn signals_that_a_call_raises_for_the_first_thread_are_its_own() {
    as_natively_in("tests/c/raised.c", "first");
}

#[test]
fn all_threads_stop_whatever_the_first_one_does() {
    as_natively_in("tests/c/stops.c", "");
}
