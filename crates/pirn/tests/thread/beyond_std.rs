//! The parts of `pirn::thread` beyond `std::thread`, and the attribute macros.

use std::collections::HashSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::common::{crowd, many, on_virtual, watched};
use pirn::thread::{self, Builder, Thread, ThreadState};

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

#[watched]
fn a_scoped_join_gives_the_handle_back_or_the_panic() {
    crate::common::on_virtual(scoped_joins);
    scoped_joins();
}

fn scoped_joins() {
    let (go, gone) = mpsc::channel::<()>();
    thread::scope(|s| {
        let handle = s.spawn(move || gone.recv().is_err());
        let handle = handle.join_timeout(Duration::ZERO).unwrap_err();
        let handle = handle.join_timeout(Duration::from_millis(2)).unwrap_err();
        thread::current().interrupt();
        let handle = handle.join_interruptible().unwrap_err();
        assert!(thread::take_interrupt());
        drop(go);
        assert!(handle.join_interruptible().unwrap().unwrap());
    });
    // A panic that was joined is not one of the scope.
    thread::scope(|s| {
        let handle = s.spawn(|| panic!("snap"));
        let long = Duration::from_secs(24 * 3600);
        assert!(handle.join_timeout(long).unwrap().is_err());
    });
}

#[watched]
fn an_id_has_the_number_that_dumps_show() {
    let handle = thread::spawn(|| format!("{:?}", thread::current()));
    let number = handle.thread().id().as_u64();
    let shown = handle.join().unwrap();
    assert!(shown.contains(&format!("[#{number}]")), "{shown}");
}

#[watched]
fn a_thread_tells_its_state() {
    let (go, gone) = mpsc::channel::<()>();
    let handle = thread::spawn(move || {
        let me = thread::current().state();
        let _ = gone.recv();
        me
    });
    let thread = handle.thread().clone();
    while thread.state() != Some(ThreadState::Waiting) {
        thread::yield_now();
    }
    drop(go);
    assert_eq!(handle.join().unwrap(), Some(ThreadState::Running));
    assert_eq!(thread.state(), Some(ThreadState::Terminated));
    let platform = std::thread::spawn(|| thread::current().state());
    assert_eq!(platform.join().unwrap(), None);
}

#[watched]
fn a_handler_learns_of_panics_that_end_threads() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&reports);
    let builder = Builder::new()
        .name("bobbin".into())
        .on_panic(move |thread, panic| {
            assert_eq!(thread.id(), thread::current().id());
            let name = thread.name().unwrap().to_owned();
            log.lock()
                .unwrap()
                .push((name, panic.message().map(str::to_owned)));
            panic!("the handler panics, too");
        });
    assert_eq!(builder.clone().spawn(|| 7).unwrap().join().unwrap(), 7);
    let payload = builder.clone().spawn(|| panic!("snap")).unwrap().join();
    assert_eq!(payload.unwrap_err().downcast_ref(), Some(&"snap"));
    thread::scope(|s| {
        let handle = builder.clone().spawn_scoped(s, || std::panic::panic_any(9));
        let payload = handle.unwrap().join().unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&9));
    });
    // A caught panic ends no thread, and a scope's `join` reports a subtask's.
    let caught = builder
        .clone()
        .spawn(|| std::panic::catch_unwind(|| panic!("caught")).is_err());
    assert!(caught.unwrap().join().unwrap());
    let scope = pirn::scope::Builder::new().threads(builder);
    let failed = scope.open(|s| {
        s.fork(|| -> Result<(), ()> { panic!("of a subtask") });
        s.join()?;
        Ok(())
    });
    assert!(failed.is_err());
    let name = || "bobbin".to_owned();
    let expected = [(name(), Some("snap".to_owned())), (name(), None)];
    assert_eq!(*reports.lock().unwrap(), expected);
}

#[watched]
fn quiesce_waits_for_all_threads() {
    // In a process without the threads of other tests.
    crate::common::child::isolated(&[], || {
        assert!(thread::quiesce(Duration::ZERO), "there is no runtime yet");
        let (go, gone) = mpsc::channel::<()>();
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        thread::spawn(move || {
            let _ = gone.recv();
            let inner = thread::spawn(move || end.store(true, SeqCst));
            drop(inner);
        });
        assert!(!thread::quiesce(Duration::from_millis(2)));
        drop(go);
        assert!(thread::quiesce(Duration::MAX));
        assert!(ended.load(SeqCst));
        // On a virtual thread, which does not count.
        let inside = thread::spawn(|| thread::quiesce(Duration::MAX));
        assert!(inside.join().unwrap());
    });
}
