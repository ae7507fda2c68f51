//! Coroutines of C, by `swapcontext`, on virtual threads.

use super::c_checks;
use crate::common::watched;

#[watched]
fn a_context_of_another_thread_leaves_the_carriers_mask_alone() {
    c_checks::run("pthread_contexts.c", "check_contexts_of_another_thread");
}
