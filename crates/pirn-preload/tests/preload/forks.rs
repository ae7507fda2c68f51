//! Children of forks have virtual threads. Each check, in C, writes the same as natively.
//!
//! They are in programs that the library is preloaded to, and not in a test of `pirn`, which is a
//! Rust program: there a thread that starts takes a lock of `std`'s, which the child of a fork
//! would find locked for ever if a carrier was just starting.

use crate::shared::as_natively_in;

fn as_natively(check: &str) {
    as_natively_in("tests/c/forks.c", check);
}

#[test]
fn each_generation_of_processes_has_threads() {
    as_natively("0");
}

#[test]
fn a_thread_forks_and_its_child_has_threads() {
    as_natively("1");
}

#[test]
fn children_of_a_busy_process_have_threads() {
    as_natively("2");
}

#[test]
fn the_thread_that_forked_is_known_in_the_child() {
    as_natively("3");
}

#[test]
fn a_child_ends_with_its_last_thread() {
    as_natively("4");
}

#[test]
fn handlers_from_before_the_first_thread_run_on_a_thread_of_libcs() {
    as_natively("5");
}

#[test]
fn handlers_that_are_registered_by_libcs_old_function_do_so_too() {
    as_natively_in("tests/c/atfork.c", "");
}
