//! The parts of `pirn::thread` beyond `std::thread`, and the attribute macros.

use std::collections::HashSet;
use std::process::ExitCode;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::common::{crowd, many, on_virtual, watched};
use pirn::thread::{self, Builder, Thread};

#[watched]
fn threads_know_whether_they_are_virtual() {
    assert!(!thread::current().is_virtual());
    let handle = thread::spawn(|| thread::current().is_virtual());
    assert!(handle.thread().is_virtual());
    assert!(handle.join().unwrap());
    // A platform thread made by a virtual one is a platform thread.
    let inner = || thread::current().is_virtual();
    assert!(!on_virtual(move || std::thread::spawn(inner)
        .join()
        .unwrap()));
    thread::scope(|scope| assert!(scope.spawn(inner).join().unwrap()));
}

#[watched]
fn ids_of_both_kinds_differ() {
    let ids = Mutex::new(HashSet::new());
    crowd(|_| assert!(ids.lock().unwrap().insert(thread::current().id())));
    assert!(ids.lock().unwrap().insert(thread::current().id()));
}

#[watched]
fn a_counter_names_threads_in_order() {
    let builder = Builder::new().name_counter("bobbin-", 7);
    for number in 7..10 {
        let handle = builder.clone().spawn(thread::current).unwrap();
        assert_eq!(handle.thread().name(), Some(&*format!("bobbin-{number}")));
        handle.join().unwrap();
    }
}

#[watched]
fn clones_of_a_builder_make_threads_alike() {
    let builder = Builder::new().name_counter("f", 0);
    let names = Mutex::new(HashSet::new());
    crowd(|_| {
        let handle = builder
            .clone()
            .spawn(|| thread::current().name().unwrap().to_owned());
        assert!(
            names
                .lock()
                .unwrap()
                .insert(handle.unwrap().join().unwrap())
        );
    });
    let expected: HashSet<_> = (0..crate::common::crowd_size())
        .map(|i| format!("f{i}"))
        .collect();
    assert_eq!(names.into_inner().unwrap(), expected);
    let text = String::from("borrowed");
    thread::scope(|scope| {
        let handle = builder.clone().spawn_scoped(scope, || text.len()).unwrap();
        assert_eq!(handle.join().unwrap(), 8);
    });
}

#[watched]
fn sleep_until_reaches_its_time() {
    crowd(|i| {
        let until = Instant::now() + Duration::from_millis(i as u64 % 20);
        thread::sleep_until(until);
        assert!(Instant::now() >= until);
        thread::sleep_until(until); // a time in the past ends at once
    });
}

/// Waits until the state of `thread` is `state`, and gives its description.
fn await_state(thread: &Thread, state: &str) -> String {
    loop {
        let text = format!("{thread:?}");
        if text.contains(&format!("]/{state}")) {
            return text;
        }
        thread::yield_now();
    }
}

#[watched]
fn debug_shows_name_state_and_carrier() {
    let (end, ended) = mpsc::channel::<()>();
    let builder = Builder::new().name("warp".into());
    let handle = builder
        .spawn(move || {
            let running = format!("{:?}", thread::current());
            let _ = ended.recv();
            running
        })
        .unwrap();
    let thread = handle.thread().clone();
    let waiting = await_state(&thread, "waiting");
    let prefix = waiting.strip_suffix("/waiting").unwrap();
    assert!(prefix.starts_with("VirtualThread[#"), "{waiting}");
    assert!(prefix.ends_with(",warp]"), "{waiting}");
    end.send(()).unwrap();
    let running = handle.join().unwrap();
    assert!(
        running.starts_with(&format!("{prefix}/running@")),
        "{running}"
    );
    assert_eq!(
        await_state(&thread, "terminated"),
        format!("{prefix}/terminated")
    );
}

#[watched]
fn debug_of_the_waiting_shows_no_carrier() {
    type Wait = fn();
    let waits: [Wait; 3] = [
        thread::park,
        || thread::sleep(Duration::from_secs(3600)),
        || {
            let (_writer, reader) = mpsc::channel::<()>();
            let _ = reader.recv_timeout(Duration::from_secs(3600));
        },
    ];
    for wait in waits {
        let thread = thread::spawn(wait).thread().clone();
        assert!(await_state(&thread, "waiting").ends_with("/waiting"));
        thread.unpark();
    }
}

#[watched]
fn many_threads_have_many_states() {
    // Looking at threads that run, park and end meanwhile is harmless.
    thread::scope(|scope| {
        let handles: Vec<_> = (0..many())
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..10 {
                        thread::yield_now();
                        thread::park_timeout(Duration::from_micros(50));
                    }
                })
            })
            .collect();
        while !handles.iter().all(|handle| handle.is_finished()) {
            for handle in &handles {
                assert!(format!("{handle:?}").contains("VirtualThread[#"));
            }
            thread::yield_now();
        }
    });
}

#[watched]
fn main_runs_on_a_virtual_thread() {
    #[pirn::main]
    fn main() {
        assert!(thread::current().is_virtual());
        assert_eq!(thread::spawn(|| 1).join().unwrap(), 1);
    }
    main();
}

#[watched]
fn main_may_return_a_result() {
    #[pirn::main]
    fn fails() -> Result<(), Box<dyn std::error::Error>> {
        let _: u8 = "seven".parse()?;
        Ok(())
    }
    #[pirn::main]
    fn succeeds() -> Result<(), Box<dyn std::error::Error>> {
        let _: u8 = "7".parse()?;
        Ok(())
    }
    let shown = |code: ExitCode| format!("{code:?}");
    assert_eq!(shown(fails()), shown(ExitCode::FAILURE));
    assert_eq!(shown(succeeds()), shown(ExitCode::SUCCESS));
}

#[watched]
fn a_panic_in_main_goes_on() {
    #[pirn::main]
    fn main() {
        std::panic::panic_any(7_u8);
    }
    let payload = std::panic::catch_unwind(main).unwrap_err();
    assert_eq!(payload.downcast_ref::<u8>(), Some(&7));
}

#[pirn::test]
fn a_pirn_test_runs_on_a_virtual_thread() {
    assert!(thread::current().is_virtual());
}

#[pirn::test]
#[should_panic(expected = "as it should")]
fn a_pirn_test_should_panic() {
    thread::yield_now();
    panic!("as it should");
}

#[pirn::test]
fn a_pirn_test_may_return_a_result() -> Result<(), std::num::ParseIntError> {
    "7".parse::<u8>().map(drop)
}
