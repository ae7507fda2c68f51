//! Stacks are large while threads are few, and small when they are many; a thread that needs the
//! room is warned before it is gone.

use crate::common::stack::{dive, own_stack, sink};
use crate::common::{carriers, child, on_virtual, watched};
use pirn::thread::{self, Builder, JoinHandle};
use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The default of a program without debug assertions.
const SIZES: (&str, &str) = ("PIRN_STACK_SIZE", "256K..2M");
const SMALL: usize = 256 << 10;
const LARGE: usize = 2 << 20;
/// The number of threads that have large stacks.
const FEW: usize = 4096;
/// The beginning of the warning, and what it advises.
const WARNING: &str = "pirn: a virtual thread has used ";
const ADVICE: &str = "Set Builder::stack_size for such threads, or PIRN_STACK_SIZE=2048K for all";

/// Starts threads that stay parked. Returns the sizes of their stacks as well.
fn start_parked(count: usize) -> (Vec<JoinHandle<()>>, Vec<usize>) {
    let (tell, told) = mpsc::channel();
    let parked = |_| {
        let tell = tell.clone();
        thread::spawn(move || {
            tell.send(own_stack()[0]).unwrap();
            thread::park();
        })
    };
    let handles = Vec::from_iter((0..count).map(parked));
    (handles, told.iter().take(count).collect())
}

fn count(sizes: &[usize], size: usize) -> usize {
    sizes.iter().filter(|s| **s == size).count()
}

/// Runs the running test as a child with the default sizes, to its end. Asserts that it ends well.
fn run(variables: &[(&str, &str)]) -> String {
    let output = child::run(&[&[SIZES], variables].concat());
    assert!(output.status.success(), "{}", child::report(&output));
    text(&output)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[watched]
fn a_deep_thread_runs_well_and_one_warning_names_it() {
    if child::is_here() {
        fn weave() {
            assert!(dive(1_500 << 10) >= 1_500 << 10);
        }
        for _ in 0..3 {
            Vec::from_iter((0..10).map(|_| thread::spawn(weave)))
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        }
        return;
    }
    let text = run(&[]);
    assert_eq!(text.matches(WARNING).count(), 1, "{text}");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(WARNING))
        .unwrap();
    let kib: usize = line.split(' ').next().unwrap().parse().unwrap();
    assert!((1_500..1_600).contains(&kib), "{line}");
    assert!(
        line.contains("large_stacks::") && line.contains("weave"),
        "{line}"
    );
    assert!(line.contains(ADVICE), "{line}");
    // It can be switched off.
    assert!(!self::run(&[("PIRN_QUIET", "")]).contains(WARNING));
}

#[watched]
fn who_fits_a_small_stack_is_not_warned() {
    if child::is_here() {
        let dived = on_virtual(|| dive(240 << 10));
        assert!(dived >= 240 << 10);
        // More than that, but it has asked for it.
        let builder = Builder::new().stack_size(1 << 20);
        builder.spawn(|| dive(900 << 10)).unwrap().join().unwrap();
        return;
    }
    let text = run(&[]);
    assert!(!text.contains(WARNING), "{text}");
}

#[watched]
fn the_first_threads_have_large_stacks_and_the_others_small_ones() {
    child::isolated(&[SIZES], || {
        let (handles, sizes) = start_parked(FEW + 1000);
        let large = count(&sizes, LARGE);
        // The pool may hold some back for the processors' caches, and so plan more.
        assert!((FEW - 1000..=FEW).contains(&large), "{large}");
        assert_eq!(large + count(&sizes, SMALL), sizes.len());
        // An exact size is exact, whatever others get.
        let builder = Builder::new().stack_size(SMALL);
        assert_eq!(builder.spawn(own_stack).unwrap().join().unwrap()[0], SMALL);
        for handle in handles {
            handle.thread().unpark();
            handle.join().unwrap();
        }
        // The next crowd gets no small stacks, but for some from the processors' caches.
        let (_handles, sizes) = start_parked(FEW / 2);
        let small = count(&sizes, SMALL);
        assert!(small <= 64 * carriers(), "{small}");
    });
}

#[watched]
fn an_overflow_of_a_small_stack_says_why_it_is_small() {
    if child::is_here() {
        let _parked = start_parked(FEW + 1000);
        let builder = Builder::new().name("selvedge".into());
        let _ = builder.spawn(|| sink(0)).unwrap().join();
        return;
    }
    let output = child::run(&[SIZES]);
    let text = text(&output);
    assert!(
        text.contains("'selvedge' has overflowed its stack"),
        "{text}"
    );
    assert!(text.contains("stack size 256 KiB"), "{text}");
    assert!(text.contains("not among the first 4096 threads"), "{text}");
}

#[watched]
fn an_overflow_of_a_large_stack_is_named_too() {
    if child::is_here() {
        let builder = Builder::new().name("selvedge".into());
        let _ = builder.spawn(|| sink(0)).unwrap().join();
        return;
    }
    let text = text(&child::run(&[SIZES]));
    assert!(
        text.contains("'selvedge' has overflowed its stack"),
        "{text}"
    );
    assert!(text.contains("stack size 2048 KiB"), "{text}");
}

#[watched]
fn where_threads_are_deep_all_have_the_room() {
    if child::is_here() {
        on_virtual(|| dive(1 << 20));
        let (handles, sizes) = start_parked(FEW + 3000);
        assert_eq!(count(&sizes, LARGE), sizes.len());
        drop(handles);
        return;
    }
    // The warning comes before the crowd, not at the exit.
    assert!(run(&[]).contains(WARNING));
}

#[watched]
fn the_warning_comes_while_small_and_deep_threads_are_busy() {
    if child::is_here() {
        let deep = thread::spawn(|| {
            thread::park();
            assert_eq!(own_stack()[0], LARGE);
            dive(1 << 20);
            thread::park();
        });
        let _others = start_parked(FEW + 1000);
        deep.thread().unpark();
        on_virtual(|| {
            loop {
                thread::yield_now();
            }
        });
    }
    assert!(warns_before_its_end());
}

#[watched]
fn the_warning_comes_before_an_idle_program_gives_memory_back() {
    if child::is_here() {
        // More stacks than the carriers keep for the next threads.
        on_virtual(|| {
            let threads = (0..200 * carriers()).map(|_| {
                thread::spawn(|| {
                    dive(1 << 20);
                    thread::sleep(Duration::from_millis(10));
                })
            });
            let threads = Vec::from_iter(threads);
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        });
        std::thread::sleep(Duration::MAX);
    }
    assert!(warns_before_its_end());
}

/// Runs the running test as a child, which does not end by itself, until it warns.
fn warns_before_its_end() -> bool {
    let mut command = child::command();
    command.env(SIZES.0, SIZES.1).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let warned = lines.any(|line| line.unwrap().contains(WARNING));
    child.kill().unwrap();
    child.wait().unwrap();
    warned
}
