//! `pthread_create` where it makes virtual threads, as it does for programs that know nothing of
//! them. The checks are in C.

use std::ffi::c_void;
use std::net::ToSocketAddrs;

use super::c_checks::{Check, Checks, pirn_make_pthreads_virtual};
use crate::common::{child, watched};

unsafe extern "C" {
    fn pirn_count_pthreads(counts: *mut u64, room: usize) -> usize;
}

/// Builds the C files and returns one of its functions. `None`, and a printed reason,
/// without `cc`.
fn check(name: &str) -> Option<Check> {
    let sources = ["pthread_create.c", "pthread_attributes.c"];
    let checks = Checks::build(&sources, &["-fexceptions"])?;
    type Count = unsafe extern "C" fn(*mut u64, usize) -> usize;
    let count = checks.symbol(c"pirn_count_pthreads").cast::<Count>();
    // SAFETY: a variable of this type, which no thread reads yet.
    unsafe { count.write(pirn_count_pthreads) };
    Some(checks.check(name))
}

/// Runs a check in a child process, on this thread and then on a thread made by `pthread_create`.
fn on_both(name: &str) {
    once(name, |check| {
        check();
        on_virtual(check);
    });
}

/// Runs a check in a child process.
fn once(name: &str, run: impl FnOnce(Check)) {
    child::isolated(&[], || {
        let Some(check) = check(name) else { return };
        // SAFETY: no requirements.
        unsafe { pirn_make_pthreads_virtual(1) };
        run(check);
    });
}

fn on_virtual(check: Check) {
    extern "C" fn start(check: *mut c_void) -> *mut c_void {
        // SAFETY: passed below.
        unsafe { std::mem::transmute::<*mut c_void, Check>(check)() };
        check
    }
    let (mut thread, mut result) = (0, std::ptr::null_mut());
    let argument = check as *mut c_void;
    // SAFETY: as documented.
    unsafe {
        let created = libc::pthread_create(&mut thread, std::ptr::null(), start, argument);
        assert_eq!(created, 0);
        assert_eq!(libc::pthread_join(thread, &mut result), 0);
    }
    assert_eq!(result, argument);
}

#[watched]
fn ten_thousand_threads_return_their_results() {
    on_both("check_many");
}

#[watched]
fn a_joined_thread_gives_its_memory_back() {
    on_both("check_reuse");
}

#[watched]
fn detached_threads_end_by_themselves() {
    on_both("check_detached");
}

#[watched]
fn pthread_exit_runs_cleanup_handlers_and_destructors() {
    on_both("check_exit");
}

#[watched]
fn joins_wait_try_give_up_and_refuse_as_in_glibc() {
    on_both("check_join");
}

#[watched]
fn each_thread_has_its_thread_local_data_and_destructors_run() {
    on_both("check_data");
}

#[watched]
fn c11_threads_are_virtual_too() {
    on_both("check_c11");
}

#[watched]
fn attributes_that_only_an_os_thread_can_have_make_one() {
    on_both("check_fallback");
}

#[watched]
fn stack_guard_and_name_are_as_asked_for() {
    on_both("check_attributes");
}

#[watched]
fn thread_ids_are_the_threads_own() {
    on_both("check_identity");
}

#[watched]
fn without_memory_pthread_create_says_eagain() {
    once("check_shortage", |check| check());
}

#[watched]
fn the_process_ends_with_its_last_thread_after_main_has_left() {
    once("check_main_exits", |check| check());
}

/// `std` makes its threads by `pthread_create`; the runtime's threads stay platform threads.
#[watched]
fn threads_of_std_are_virtual_and_those_of_the_runtime_are_not() {
    child::isolated(&[], || {
        // SAFETY: no requirements.
        unsafe { pirn_make_pthreads_virtual(1) };
        let tasks = || std::fs::read_dir("/proc/self/task").unwrap().count();
        let threads = Vec::from_iter((0..1000).map(|number| {
            std::thread::spawn(move || {
                std::thread::park();
                // The pool of the runtime.
                assert!(("localhost", 80).to_socket_addrs().is_ok());
                number
            })
        }));
        assert!(tasks() < 200);
        for (number, thread) in threads.into_iter().enumerate() {
            thread.thread().unpark();
            assert_eq!(thread.join().unwrap(), number);
        }
        let panicked = std::thread::spawn(|| panic!("as expected")).join();
        assert!(panicked.is_err());
        assert!(pirn::thread::spawn(|| true).join().unwrap());
    });
}

#[cfg(feature = "dump")]
#[watched]
fn dumps_name_threads_as_they_have_named_themselves() {
    child::isolated(&[], || {
        // SAFETY: no requirements.
        unsafe { pirn_make_pthreads_virtual(1) };
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let worker = std::thread::Builder::new().name("a-worker-of-std".into());
        let worker = worker.spawn(move || ended.recv()).unwrap();
        let dump = loop {
            let dump = pirn::dump::take().to_string();
            if dump.contains("1 waiting") {
                break dump;
            }
            std::thread::yield_now();
        };
        assert!(dump.contains("\"a-worker-of-std\""), "{dump}");
        let start_frames = [
            "call_as_pthread",
            "thread_start",
            "what called it is not known",
        ];
        assert!(
            start_frames.iter().all(|frame| !dump.contains(frame)),
            "{dump}"
        );
        drop(end);
        worker.join().unwrap().unwrap_err();
    });
}
