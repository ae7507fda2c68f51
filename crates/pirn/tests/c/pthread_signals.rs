//! Signals to virtual threads, as POSIX has them. The checks are in C; each runs in a process of
//! its own, on the main thread and then on a virtual one.

use std::os::unix::process::ExitStatusExt;

use super::c_checks::{self, Checks, pirn_make_pthreads_virtual};
use crate::common::{child, watched};

const SOURCE: &str = "pthread_signals.c";

fn run(name: &str) {
    c_checks::run(SOURCE, name);
}

#[watched]
fn waits_fail_with_eintr_after_a_handler() {
    run("check_eintr");
}

#[watched]
fn waits_are_begun_again_after_a_handler() {
    run("check_restart");
}

#[watched]
fn a_thread_that_computes_runs_a_handler() {
    run("check_running");
}

#[watched]
fn masks_and_pending_signals_are_a_threads_own() {
    run("check_masks");
}

#[watched]
fn a_thread_waits_for_its_own_signals_and_those_of_the_process() {
    run("check_waits");
}

#[watched]
fn handlers_park_wherever_they_have_interrupted_a_thread() {
    run("check_stopping");
}

#[watched]
fn flags_of_actions_and_jumps_out_of_handlers() {
    run("check_flags");
}

#[watched]
fn handlers_end_their_thread_in_calls_that_run_them() {
    run("check_leaving");
}

#[watched]
fn children_inherit_the_mask_of_their_thread() {
    run("check_children");
}

#[watched]
fn the_default_action_ends_the_process() {
    if child::is_here() {
        crate::common::sys::no_core_file();
        let Some(checks) = Checks::build(&[SOURCE], &[]) else {
            // SAFETY: what the test expects, without the check.
            unsafe { libc::raise(libc::SIGUSR2) };
            return;
        };
        // SAFETY: no requirements.
        unsafe { pirn_make_pthreads_virtual(1) };
        return checks.check("check_default_action")();
    }
    let output = child::run(&[]);
    let report = child::report(&output);
    assert_eq!(output.status.signal(), Some(libc::SIGUSR2), "{report}");
}
