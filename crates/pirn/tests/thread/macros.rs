//! `#[pirn::main]` and `#[pirn::test]` give their function a stack, a name, captured output, and a
//! readable error.

use std::hint::black_box;
use std::process::{Command, Output};

use crate::common::{child, watched};
use pirn::thread;

/// Returns the running thread's names in `std` and in pirn.
fn names() -> [Option<String>; 2] {
    let own = thread::current().name().map(str::to_owned);
    [std::thread::current().name().map(str::to_owned), own]
}

#[pirn::test]
fn a_test_has_the_name_that_the_harness_shows() {
    let name = "macros::a_test_has_the_name_that_the_harness_shows";
    assert_eq!(names(), [Some(name.into()), Some(name.into())]);
    assert!(thread::current().is_virtual());
}

mod inner {
    #[pirn::test]
    fn a_test_in_a_module_has_its_path() {
        assert_eq!(
            super::names()[0].as_deref(),
            Some("macros::inner::a_test_in_a_module_has_its_path")
        );
    }
}

#[pirn::test]
fn a_test_may_begin_with_inner_attributes() {
    #![allow(unused_variables)]
    let unused = 1;
}

#[pirn::test]
#[ignore = "run by another test, as a child"]
fn prints_and_passes() {
    println!("warp");
    eprintln!("weft");
}

#[pirn::test]
#[ignore = "run by another test, as a child"]
fn prints_and_fails() {
    println!("warp");
    panic!("the thread tangled");
}

/// Returns the output of a run of one of the ignored tests of this file, with its output captured.
fn captured(test: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--color=never"]);
    command.env("RUST_BACKTRACE", "0").output().unwrap()
}

#[watched]
fn what_a_test_prints_is_captured() {
    let output = captured("macros::prints_and_passes");
    let report = child::report(&output);
    assert!(output.status.success(), "{report}");
    assert!(
        !report.contains("warp") && !report.contains("weft"),
        "{report}"
    );
}

#[watched]
fn what_a_failed_test_has_printed_is_shown_with_it() {
    let output = captured("macros::prints_and_fails");
    assert!(!output.status.success(), "{}", child::report(&output));
    let (out, err) = (output.stdout, output.stderr);
    let (out, err) = (
        String::from_utf8(out).unwrap(),
        String::from_utf8(err).unwrap(),
    );
    let (_, shown) = out
        .split_once("---- macros::prints_and_fails stdout ----")
        .expect(&out);
    assert!(shown.contains("warp"), "{out}");
    assert!(shown.contains("thread 'macros::prints_and_fails'"), "{out}");
    assert!(shown.contains("the thread tangled"), "{out}");
    assert!(
        !err.contains("tangled") && !err.contains("VirtualThread"),
        "{err}"
    );
}

/// Runs `depth` frames of some four kilobytes each.
fn recurse(depth: usize) -> usize {
    let frame = black_box([depth as u8; 4096]);
    if depth == 0 {
        0
    } else {
        recurse(depth - 1) + usize::from(frame[depth % 4096] == depth as u8)
    }
}

/// Programs' `main`s.
mod programs {
    #[pirn::main]
    pub fn deep() {
        assert_eq!(super::recurse(1_000), 1_000);
    }

    #[pirn::main]
    pub fn main() {
        assert_eq!(super::names(), [Some("main".into()), Some("main".into())]);
    }

    #[pirn::main]
    pub fn panics() {
        panic!("the thread tangled");
    }
}

#[watched]
fn main_has_the_name_and_the_stack_of_main() {
    // Small stacks are for other threads.
    child::isolated(&[("PIRN_STACK_SIZE", "64K")], || {
        programs::main();
        programs::deep();
    });
}

#[watched]
fn a_panic_of_main_is_reported_by_its_name() {
    if child::is_here() {
        assert!(std::panic::catch_unwind(programs::panics).is_err());
        return;
    }
    let output = child::run(&[("RUST_BACKTRACE", "0")]);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}", child::report(&output));
    assert!(err.contains("thread 'panics'"), "{err}");
    assert!(!err.contains("VirtualThread"), "{err}");
}

#[watched]
fn a_main_that_cannot_start_ends_the_process_with_one_line() {
    if child::is_here() {
        programs::main();
        return;
    }
    let output = child::run(&[("PIRN_PARALLELISM", "0"), ("RUST_BACKTRACE", "1")]);
    assert_eq!(output.status.code(), Some(1), "{}", child::report(&output));
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(
        err.contains("PIRN_PARALLELISM") && err.contains("1 to 1024"),
        "{err}"
    );
}
