//! How signals are delivered to virtual threads. The checks are in C; each runs in a process of its
//! own, on the main thread and then on a virtual one.

use super::c_checks;
use crate::common::watched;

fn run(name: &str) {
    c_checks::run("pthread_delivery.c", name);
}

#[watched]
fn each_signal_is_delivered_once() {
    run("check_each_once");
}

#[watched]
fn threads_stop_while_they_wake_others() {
    run("check_stopped_wakers");
}

#[watched]
fn threads_wait_with_a_mask_as_with_none() {
    run("check_masked_waits");
}

#[watched]
fn handlers_get_and_leave_the_floating_point_environment() {
    run("check_float");
}
