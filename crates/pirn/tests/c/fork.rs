//! `fork` without `exec`: the child survives, with its thread-locals, its heap and its glibc.
//!
//! Each test has its own process, so that the child does not copy other tests' threads in mid-work.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::hint;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use crate::common::sys::{self, check};
use crate::common::{many, on_virtual, watched};
use pirn::scope::{self, JoinError, State};
use pirn::thread::{self, Interrupted};

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Forks, runs `body` in the child, and asserts that it ends there without a failure.
#[track_caller]
fn in_fork(body: impl FnOnce()) {
    // SAFETY: the children below use only what glibc keeps usable after a fork.
    let pid = check(unsafe { libc::fork() }).unwrap();
    if pid == 0 {
        pirn_testing::end_if_it_hangs();
        let fine = catch_unwind(AssertUnwindSafe(body)).is_ok();
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!fine)) };
    }
    assert_eq!(sys::waitpid(pid).unwrap(), 0, "status of the child");
}

/// Uses the heap and thread-locals, which a child should still be able to do.
fn use_thread_and_heap(number: usize) {
    assert_eq!(NUMBER.get(), number);
    NUMBER.set(number + 1);
    assert_eq!(NUMBER.get(), number + 1);
    sys::set_errno(libc::EDOM);
    let map: HashMap<_, _> = (0..1000).map(|i| (i, i.to_string())).collect();
    assert_eq!(map[&999], "999");
    drop(vec![1_u8; 1 << 20]);
    assert_eq!(sys::errno(), libc::EDOM);
    assert_eq!(*Mutex::new(5).lock().unwrap(), 5);
}

#[watched(alone)]
fn a_child_has_its_thread_locals_and_heap() {
    on_virtual(|| {
        NUMBER.set(7);
        in_fork(|| use_thread_and_heap(7));
        assert_eq!(NUMBER.get(), 7);
    });
}

#[watched(alone)]
fn a_child_forked_on_a_platform_thread_is_as_good() {
    on_virtual(|| ()); // the runtime is up
    NUMBER.set(8);
    in_fork(|| use_thread_and_heap(8));
}

#[watched(alone)]
fn a_child_talks_through_a_pipe() {
    on_virtual(|| {
        let (mut reader, writer) = io::pipe().unwrap();
        in_fork(|| (&writer).write_all(b"from the child").unwrap());
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "from the child");
    });
}

#[watched(alone)]
fn a_child_may_block() {
    on_virtual(|| {
        let (to_child, writer) = io::pipe().unwrap();
        let writing = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            (&writer).write_all(b"x").unwrap();
        });
        in_fork(|| {
            std::thread::sleep(Duration::from_millis(1));
            assert_eq!((&to_child).read(&mut [0]).unwrap(), 1);
        });
        writing.join().unwrap();
    });
}

extern "C" fn set_flag(flag: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the creator passes an `AtomicBool` that outlives the thread.
    unsafe { &*flag.cast::<AtomicBool>() }.store(true, SeqCst);
    flag
}

/// Starts an OS thread and waits until it has run.
fn run_platform_thread() {
    let flag = AtomicBool::new(false);
    let mut id = 0;
    let argument = (&raw const flag).cast_mut().cast();
    // SAFETY: the argument outlives the wait below, and the thread uses nothing else.
    let error = unsafe { libc::pthread_create(&mut id, std::ptr::null(), set_flag, argument) };
    assert_eq!(error, 0);
    while !flag.load(SeqCst) {
        hint::spin_loop();
    }
}

#[watched(alone)]
fn glibc_can_still_make_threads_in_the_child() {
    // `fork` in glibc walks its lists of stacks and unlinks the calling thread; `pthread_create`
    // walks them again.
    on_virtual(|| {
        in_fork(|| {
            for _ in 0..10 {
                run_platform_thread();
            }
        });
        run_platform_thread();
    });
}

#[watched(alone)]
fn a_child_may_fork_again() {
    on_virtual(|| {
        NUMBER.set(9);
        in_fork(|| {
            in_fork(|| {
                use_thread_and_heap(9);
                run_platform_thread();
            });
            use_thread_and_heap(9);
        });
    });
}

#[watched(alone)]
fn atfork_handlers_run() {
    static STEPS: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    thread_local! {
        static WATCHED: Cell<bool> = const { Cell::new(false) };
    }
    fn step(name: &'static str) {
        if WATCHED.get() {
            STEPS.lock().unwrap().push(name);
        }
    }
    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn __register_atfork(
            prepare: Handler,
            parent: Handler,
            child: Handler,
            object: *mut c_void,
        ) -> c_int;
    }
    unsafe extern "C" fn prepare() {
        step("prepare");
    }
    unsafe extern "C" fn parent() {
        step("parent");
    }
    unsafe extern "C" fn child() {
        step("child");
    }
    on_virtual(|| {
        // What `pthread_atfork` calls.
        // SAFETY: the handlers stay valid for ever.
        let error =
            unsafe { __register_atfork(Some(prepare), Some(parent), Some(child), ptr::null_mut()) };
        assert_eq!(error, 0);
        WATCHED.set(true);
        in_fork(|| assert_eq!(*STEPS.lock().unwrap(), ["prepare", "child"]));
        assert_eq!(*STEPS.lock().unwrap(), ["prepare", "parent"]);
    });
}

#[watched(alone)]
fn forks_amid_a_busy_crowd() {
    let over = AtomicBool::new(false);
    let over = &over;
    thread::scope(|scope| {
        for i in 0..many() {
            scope.spawn(move || {
                NUMBER.set(i);
                while !over.load(SeqCst) {
                    drop(vec![0_u8; 100 + i]);
                    thread::yield_now();
                }
                assert_eq!(NUMBER.get(), i);
            });
        }
        let forking = (0..4).map(|i| {
            scope.spawn(move || {
                for _ in 0..10 {
                    NUMBER.set(i);
                    in_fork(|| use_thread_and_heap(i));
                    thread::yield_now();
                }
            })
        });
        let forking: Vec<_> = forking.collect();
        let results: Vec<_> = forking.into_iter().map(|fork| fork.join()).collect();
        over.store(true, SeqCst);
        assert!(results.iter().all(Result::is_ok));
    });
}

#[watched(alone)]
fn a_child_does_not_wait_for_subtasks_that_are_not_there() {
    let story = || {
        let timed = scope::Builder::new().timeout(Duration::from_secs(3600));
        let outcome = timed.open(|s| {
            let parked = s.fork(thread::park_interruptible);
            in_fork(|| {
                let inner: Result<(), JoinError<Interrupted>> = pirn::scope::open(|s| {
                    assert_eq!(s.fork(|| Ok(())).state(), State::Unavailable);
                    s.join()?;
                    Ok(())
                });
                assert!(matches!(inner, Err(JoinError::Fork(_))));
            });
            parked.thread().unwrap().unpark();
            s.join()?;
            Ok(())
        });
        assert!(outcome.is_ok());
    };
    story();
    on_virtual(story);
}

#[watched(alone)]
fn a_child_leaves_the_scopes_it_was_forked_in() {
    let story = || {
        let mut child = false;
        let outcome: Result<(), JoinError<Interrupted>> = pirn::scope::open(|s| {
            let parked = s.fork(thread::park_interruptible);
            // SAFETY: as in `in_fork`.
            let pid = check(unsafe { libc::fork() }).unwrap();
            child = pid == 0;
            if !child {
                assert_eq!(sys::waitpid(pid).unwrap(), 0, "status of the child");
                parked.thread().unwrap().unpark();
            }
            s.join()?;
            Ok(())
        });
        if child {
            let fine = matches!(outcome, Err(JoinError::Cancelled));
            // SAFETY: as in `in_fork`.
            unsafe { libc::_exit(i32::from(!fine)) };
        }
        assert!(outcome.is_ok());
    };
    story();
    on_virtual(story);
}
