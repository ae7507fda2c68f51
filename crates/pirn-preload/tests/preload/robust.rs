//! Robust mutexes in shared memory. The processes are forked, so they are C programs.

use crate::shared::as_natively_in;

#[test]
fn the_mutexes_of_a_killed_process_are_taken_over() {
    as_natively_in("tests/c/robust.c", "");
}
