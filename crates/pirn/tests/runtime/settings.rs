//! The settings of the runtime: from the environment and from `Config`.

use std::fs;
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use crate::common::{TempDir, child, on_virtual, virtual_crowd, watched};
use pirn::thread::{self, Builder};
use pirn::{Config, ConfigError};

#[watched]
fn bad_variables_are_errors_that_name_them() {
    let bad = [
        ("PIRN_PARALLELISM", "0"),
        ("PIRN_PARALLELISM", "many"),
        ("PIRN_PARALLELISM", ""),
        ("PIRN_PARALLELISM", "-1"),
        ("PIRN_STACK_SIZE", "12"),
        ("PIRN_STACK_SIZE", "large"),
        ("PIRN_STACK_SIZE", "99999999999999999999"),
        ("PIRN_MAX_BLOCKING_THREADS", "0"),
        ("PIRN_MAX_BLOCKING_THREADS", "1.5"),
        ("PIRN_SPARE_CARRIERS", "1025"),
        ("PIRN_SPARE_CARRIERS", ""),
        ("PIRN_TLS_RESERVE", "0"),
        ("PIRN_TLS_RESERVE", "9K"),
    ];
    child::isolated_each(bad.map(|variable| [variable]), || {
        let (name, value) = bad
            .into_iter()
            .find(|(name, value)| std::env::var(name).as_deref() == Ok(value))
            .unwrap();
        // An error each time, not just the first.
        for _ in 0..2 {
            let error = Builder::new().spawn(|| ()).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
            assert!(error.contains(value), "{error}");
        }
        assert!(std::panic::catch_unwind(|| thread::spawn(|| ())).is_err());
    });
}

/// Allows only the carriers that `PIRN_PARALLELISM` sets.
const NO_SPARES: (&str, &str) = ("PIRN_SPARE_CARRIERS", "0");

/// Returns the maximum number of `count` spinning threads that ran at the same moment.
fn most_at_once(count: usize) -> usize {
    let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                for _ in 0..20 {
                    thread::no_preemption(|| {
                        most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                        (0..10_000).for_each(|_| hint::spin_loop());
                        inside.fetch_sub(1, SeqCst);
                    });
                    thread::yield_now();
                }
            });
        }
    });
    most.into_inner()
}

/// Ends only if `count` threads that do not yield run at the same moment.
fn all_at_once(count: usize) {
    let arrived = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                arrived.fetch_add(1, SeqCst);
                while arrived.load(SeqCst) < count {
                    hint::spin_loop();
                }
            });
        }
    });
}

#[watched]
fn the_variable_sets_the_number_of_carriers() {
    child::isolated(&[("PIRN_PARALLELISM", "1"), NO_SPARES], || {
        assert_eq!(most_at_once(20), 1);
    });
}

#[watched]
fn there_may_be_more_carriers_than_cores() {
    child::isolated(&[("PIRN_PARALLELISM", "5"), NO_SPARES], || {
        all_at_once(5);
        assert!(most_at_once(50) <= 5);
    });
}

#[watched]
fn a_configuration_holds_from_the_start() {
    if !child::is_here() {
        // The environment, which may have been set for all tests, would take precedence.
        let mut command = child::command();
        command.env_remove("PIRN_PARALLELISM");
        command.env_remove("PIRN_SPARE_CARRIERS");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", child::report(&output));
        return;
    }
    let configuration = Config::new().parallelism(1).spare_carriers(0);
    configuration.apply().unwrap();
    assert_eq!(most_at_once(20), 1);
    // Too late for another.
    let error = Config::new().parallelism(2).apply().unwrap_err();
    assert_eq!(error, ConfigError::AlreadyStarted);
}

#[watched]
fn the_environment_beats_the_program() {
    child::isolated(&[("PIRN_PARALLELISM", "3"), NO_SPARES], || {
        Config::new().parallelism(1).apply().unwrap();
        all_at_once(3);
    });
}

#[watched]
fn only_one_configuration_is_taken() {
    child::isolated(&[], || {
        let bad = Config::new().parallelism(0).apply().unwrap_err();
        assert!(bad.to_string().contains("parallelism"), "{bad}");
        Config::new().stack_size(1 << 20).apply().unwrap();
        let second = Config::new().apply().unwrap_err();
        assert_eq!(second, ConfigError::AlreadyApplied);
        assert_eq!(on_virtual(|| 1), 1);
    });
}

#[watched]
fn the_pool_of_platform_threads_is_bounded() {
    let variables = [
        ("PIRN_MAX_BLOCKING_THREADS", "3"),
        ("PIRN_PARALLELISM", "2"),
        NO_SPARES,
    ];
    child::isolated(&variables, || {
        let folder = TempDir::new("pool");
        let tasks = || fs::read_dir("/proc/self/task").unwrap().count();
        let before = tasks();
        let most = AtomicUsize::new(0);
        virtual_crowd(|i| {
            let path = folder.join(&i.to_string());
            fs::write(&path, vec![0; 10_000]).unwrap();
            most.fetch_max(tasks(), SeqCst);
            fs::remove_file(&path).unwrap();
        });
        // The pool, the carriers, and a few helpers of the runtime.
        let most = most.into_inner();
        assert!(
            most <= before + 3 + 2 + 3,
            "{most} OS threads, {before} before"
        );
    });
}

#[watched]
fn without_spinning_a_waiting_thread_is_rescued_too() {
    let variables = [("PIRN_PARALLELISM", "2"), ("PIRN_SPIN_US", "0"), NO_SPARES];
    child::isolated(&variables, || {
        // The parent computes until its child, which waits in the same carrier's queue, has run.
        let parent = thread::spawn(|| {
            let ran = Arc::new(AtomicBool::new(false));
            let tell = Arc::clone(&ran);
            let child = thread::spawn(move || tell.store(true, SeqCst));
            while !ran.load(SeqCst) {
                hint::spin_loop();
            }
            child.join().unwrap();
        });
        parent.join().unwrap();
    });
}

#[watched]
fn a_misspelt_variable_is_reported_once() {
    if child::is_here() {
        (0..3).for_each(|_| thread::spawn(|| ()).join().unwrap());
        return;
    }
    let lines = |variables: &[(&str, &str)]| {
        let output = child::run(variables);
        assert!(output.status.success(), "{}", child::report(&output));
        let text = String::from_utf8(output.stderr).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("pirn: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    const MISSPELT: (&str, &str) = ("PIRN_PARALELISM", "2");
    let reported = lines(&[MISSPELT]);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("PIRN_PARALELISM"), "{reported:?}");
    assert!(
        reported[0].contains("did you mean PIRN_PARALLELISM?"),
        "{reported:?}"
    );
    assert_eq!(lines(&[MISSPELT, ("PIRN_QUIET", "1")]), [""; 0]);
    assert_eq!(lines(&[("PIRN_PARALLELISM", "2")]), [""; 0]);
}
