//! Signals to virtual threads, as POSIX has them. The checks are in C; each runs in a process of
//! its own, on the main thread and then on a virtual one.

use std::ffi::CString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use crate::common::{TempDir, child, skip, watched};

unsafe extern "C" {
    fn pirn_make_pthreads_virtual(on: libc::c_int);
}

type Check = extern "C" fn();

/// Builds the C file and returns one of its functions. `None`, and a printed reason, without `cc`.
fn check(name: &str) -> Option<Check> {
    let folder = TempDir::new("pthread-signals");
    let library = folder.join("libsignals.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/pthread_signals.c");
    let flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"];
    let built = Command::new("cc")
        .args(flags)
        .args([Path::new("-o"), &library, &source])
        .status();
    match built {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            skip(&format!("no C compiler `cc` ({error})"));
            return None;
        }
    }
    let [library, name] = [library.to_str().unwrap(), name].map(|text| CString::new(text).unwrap());
    // SAFETY: C strings; the library has no initialisers, stays, and has functions of this type.
    unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null());
        let function = libc::dlsym(handle, name.as_ptr());
        assert!(!function.is_null());
        Some(std::mem::transmute::<*mut libc::c_void, Check>(function))
    }
}

/// Runs a check in a child process, on this thread and then on a virtual one.
fn run(name: &str) {
    let carriers = ["1", "2", "8"];
    child::with_carriers(&carriers, || {
        let Some(check) = check(name) else { return };
        // SAFETY: no requirements.
        unsafe { pirn_make_pthreads_virtual(1) };
        check();
        std::thread::spawn(move || check()).join().unwrap();
    });
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
        let Some(check) = check("check_default_action") else {
            // SAFETY: what the test expects, without the check.
            unsafe { libc::raise(libc::SIGUSR2) };
            return;
        };
        // SAFETY: no requirements.
        unsafe { pirn_make_pthreads_virtual(1) };
        return check();
    }
    let output = child::run(&[]);
    let report = child::report(&output);
    assert_eq!(output.status.signal(), Some(libc::SIGUSR2), "{report}");
}
