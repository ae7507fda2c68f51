//! Panics, unwinding and destructors on virtual threads, with switches in between.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{child, many, on_virtual, virtual_crowd, watched};
use pirn::thread;

/// Runs its closure when dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[watched]
fn join_gives_the_payload() {
    let payload = thread::spawn(|| panic!("snap")).join().unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"snap"));

    let count = Duration::from_secs(7).as_secs(); // not a constant: else it would be a `&str`
    let result = thread::spawn(move || panic!("snap {count}")).join();
    let payload = result.unwrap_err();
    assert_eq!(payload.downcast_ref::<String>().unwrap(), "snap 7");

    let payload = thread::spawn(|| panic_any(42_u8)).join().unwrap_err();
    assert_eq!(payload.downcast_ref::<u8>(), Some(&42));
}

#[watched]
fn a_payload_travels_through_several_threads() {
    let outer = thread::spawn(|| {
        let payload = thread::spawn(|| panic_any(5_i32)).join().unwrap_err();
        resume_unwind(payload);
    });
    let payload = outer.join().unwrap_err();
    assert_eq!(payload.downcast_ref::<i32>(), Some(&5));
}

#[watched]
fn destructors_run_while_unwinding() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let result = thread::spawn(move || {
        let _first = OnDrop(|| seen.lock().unwrap().push("outer"));
        let _second = OnDrop(|| seen.lock().unwrap().push("inner"));
        thread::yield_now();
        panic!("snap");
    });
    assert!(result.join().is_err());
    assert_eq!(*order.lock().unwrap(), ["inner", "outer"]);
}

#[watched]
fn destructors_may_block_while_unwinding() {
    let ran = AtomicUsize::new(0);
    virtual_crowd(|_| {
        let result = catch_unwind(|| {
            let _guard = OnDrop(|| {
                thread::sleep(Duration::from_millis(1));
                // Still this thread's panic, whichever carriers it has been on.
                assert!(thread::panicking());
                ran.fetch_add(1, SeqCst);
            });
            panic_any("snap");
        });
        assert!(result.is_err());
        assert!(!thread::panicking());
    });
    assert_eq!(ran.into_inner(), many());
}

#[watched]
fn panicking_is_per_thread() {
    let unwinding = AtomicBool::new(false);
    let looked = AtomicBool::new(false);
    thread::scope(|scope| {
        let panics = scope.spawn(|| {
            let _guard = OnDrop(|| {
                unwinding.store(true, SeqCst);
                while !looked.load(SeqCst) {
                    thread::yield_now();
                }
            });
            panic!("snap");
        });
        scope.spawn(|| {
            while !unwinding.load(SeqCst) {
                thread::yield_now();
            }
            assert!(!thread::panicking());
            assert!(!std::thread::panicking());
            looked.store(true, SeqCst);
        });
        assert!(panics.join().is_err());
    });
}

#[watched]
fn a_thread_may_panic_again_after_a_catch() {
    virtual_crowd(|i| {
        for round in 0..3 {
            let result = catch_unwind(|| {
                thread::yield_now();
                panic_any(i + round);
            });
            let payload = result.unwrap_err();
            assert_eq!(payload.downcast_ref::<usize>(), Some(&(i + round)));
            thread::yield_now();
        }
    });
}

#[watched]
fn a_destructor_may_spawn_and_catch_while_unwinding() {
    let result = thread::spawn(|| {
        let _guard = OnDrop(|| {
            let inner = thread::spawn(|| panic_any(1_u8)).join();
            assert!(inner.is_err());
            assert!(catch_unwind(|| panic_any(2_u8)).is_err());
        });
        panic_any(3_u8);
    });
    let payload = result.join().unwrap_err();
    assert_eq!(payload.downcast_ref::<u8>(), Some(&3));
}

#[watched]
fn deep_unwinding_crosses_many_frames() {
    fn dive(depth: u32, drops: &Cell<u32>) {
        let _guard = OnDrop(|| drops.set(drops.get() + 1));
        if depth == 0 {
            panic!("bottom");
        }
        thread::yield_now();
        dive(depth - 1, drops);
    }
    on_virtual(|| {
        let drops = Cell::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| dive(200, &drops)));
        assert!(result.is_err());
        assert_eq!(drops.get(), 201);
    });
}

#[watched]
fn an_unjoined_panic_ends_the_scope_with_a_panic() {
    let sibling_ended = AtomicBool::new(false);
    let result = catch_unwind(AssertUnwindSafe(|| {
        thread::scope(|scope| {
            scope.spawn(|| panic!("snap"));
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(10));
                sibling_ended.store(true, SeqCst);
            });
        });
    }));
    let payload = result.unwrap_err();
    assert_eq!(
        payload.downcast_ref::<&str>(),
        Some(&"a scoped thread panicked")
    );
    assert!(sibling_ended.into_inner());
}

#[watched]
fn a_joined_panic_does_not_end_the_scope() {
    let value = thread::scope(|scope| {
        let result = scope.spawn(|| panic_any(9_u8)).join();
        *result.unwrap_err().downcast::<u8>().unwrap()
    });
    assert_eq!(value, 9);
}

#[watched]
fn a_scope_that_panics_waits_for_its_threads_first() {
    let ended = AtomicBool::new(false);
    let result = catch_unwind(AssertUnwindSafe(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(10));
                ended.store(true, SeqCst);
            });
            panic_any(4_u8);
        })
    }));
    assert_eq!(result.unwrap_err().downcast_ref::<u8>(), Some(&4));
    assert!(ended.into_inner());
}

#[watched]
fn a_panic_in_one_leaves_the_others_alone() {
    let handles: Vec<_> = (0..many())
        .map(|i| {
            thread::spawn(move || {
                thread::yield_now();
                if i % 3 == 0 {
                    panic_any(i);
                }
                i
            })
        })
        .collect();
    for (i, handle) in handles.into_iter().enumerate() {
        match handle.join() {
            Ok(value) => assert_eq!((value, i % 3 == 0), (i, false)),
            Err(payload) => assert_eq!(payload.downcast_ref::<usize>(), Some(&i)),
        }
    }
}

#[watched]
fn a_panic_prints_a_readable_backtrace() {
    #[inline(never)]
    fn tangled_thread_body() {
        thread::yield_now();
        panic!("the thread tangled");
    }
    if child::is_here() {
        assert!(thread::spawn(tangled_thread_body).join().is_err());
        return;
    }
    let output = child::run(&[("RUST_BACKTRACE", "1")]);
    assert!(output.status.success(), "{}", child::report(&output));
    let text = String::from_utf8_lossy(&output.stderr);
    for part in [
        "the thread tangled",
        "stack backtrace:",
        "tangled_thread_body",
    ] {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
    assert!(text.lines().count() < 100, "does not end: {text}");
}

/// Returns the standard error of a child process that runs `body`; `None` in the child.
fn stderr_of(body: impl FnOnce()) -> Option<String> {
    if child::is_here() {
        body();
        return None;
    }
    let output = child::run(&[("RUST_BACKTRACE", "0")]);
    assert!(output.status.success(), "{}", child::report(&output));
    Some(String::from_utf8(output.stderr).unwrap())
}

#[watched]
fn a_panic_message_names_the_virtual_thread() {
    let stderr = stderr_of(|| {
        let named = thread::Builder::new().name("weft".into());
        let handle = named.spawn(|| panic!("snap")).unwrap();
        assert!(handle.join().is_err());
    });
    let Some(stderr) = stderr else { return };
    assert!(stderr.contains(",weft]"), "{stderr}");
    assert!(stderr.contains("snap"), "{stderr}");
}

#[watched]
fn a_hook_set_before_the_first_thread_has_standard_error_for_itself() {
    let stderr = stderr_of(|| {
        std::panic::set_hook(Box::new(|info| eprintln!("{{\"panic\":\"{info}\"}}")));
        assert!(thread::spawn(|| panic!("snap")).join().is_err());
        // It is still in force for all.
        assert!(std::thread::spawn(|| panic!("snap")).join().is_err());
    });
    let Some(stderr) = stderr else { return };
    assert!(!stderr.contains("VirtualThread"), "{stderr}");
    assert_eq!(stderr.matches("{\"panic\":").count(), 2, "{stderr}");
}

#[watched]
fn a_hook_set_after_the_first_thread_has_standard_error_for_itself() {
    let stderr = stderr_of(|| {
        on_virtual(|| ());
        std::panic::set_hook(Box::new(|_| ()));
        assert!(thread::spawn(|| panic!("snap")).join().is_err());
    });
    let Some(stderr) = stderr else { return };
    assert_eq!(stderr, "");
}
