//! One line on standard error when unseen calls block all carriers in the kernel.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::common::kernel::shows_calls;
use crate::common::{child, sys, watched};
use pirn::thread;

/// Two carriers, one of them spare.
const TWO_CARRIERS: [(&str, &str); 2] = [("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "1")];

/// Reads a byte of standard input without libc. Returns the number of bytes.
fn read_unseen() -> isize {
    let mut byte = 0_u8;
    sys::inline(libc::SYS_read, 0, (&raw mut byte).addr(), 1, 0, 0)
}

#[watched]
fn carriers_that_all_stand_in_the_kernel_are_reported() {
    if child::is_here() {
        let readers: Vec<_> = (0..4).map(|_| thread::spawn(read_unseen)).collect();
        assert!(
            readers
                .into_iter()
                .all(|reader| reader.join().unwrap() == 0)
        );
        return;
    }
    if !shows_calls() {
        return;
    }
    let mut command = child::command();
    command
        .envs(TWO_CARRIERS)
        // Without the lines about each of them.
        .env("PIRN_DIAGNOSTICS", "spares-exhausted")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.starts_with("pirn: "));
    // Only now do the reads end.
    drop(child.stdin.take());
    let line = line.expect("a line about it");
    let head = "pirn: spares-exhausted: all 2 carriers have been blocked";
    assert!(line.starts_with(head), "{line}");
    assert!(line.contains("2 of them in read, called from"), "{line}");
    // The object is this program.
    let program = std::env::current_exe().unwrap();
    let name = program.file_name().unwrap().to_str().unwrap();
    assert!(line.contains(name), "no {name} in {line}");
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert!(
        rest.iter().all(|line| !line.starts_with("pirn: ")),
        "{rest:?}"
    );
    assert!(child.wait().unwrap().success());
}

#[watched]
fn carriers_that_compute_are_not_reported() {
    if child::is_here() {
        let start = std::time::Instant::now();
        let computing = || while start.elapsed().as_millis() < 1_500 {};
        thread::scope(|scope| {
            (0..3).for_each(|_| drop(scope.spawn(computing)));
        });
        return;
    }
    let mut command = child::command();
    command.envs(TWO_CARRIERS).env_remove("PIRN_DIAGNOSTICS");
    command.stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut text = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    assert!(!text.contains("pirn: "), "{text}");
}
