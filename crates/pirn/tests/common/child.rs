//! Runs a test of this same binary again in a child process.

use std::env;
use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::{Watchdog, watchdog_after};

/// Set in the child to the name of the test it runs.
const VARIABLE: &str = "PIRN_TEST_CHILD";

/// Whether this process is the child of the test called `test`.
fn is_child(test: &str) -> bool {
    env::var_os(VARIABLE).is_some_and(|value| value == OsStr::new(test))
}

/// A command that runs only the test called `test` of this binary, as a child.
pub fn command(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, test)
        .stdin(Stdio::null());
    command
}

/// In the child: `Some(watchdog)`, bites before the parent's does. In the parent: `None`.
pub fn enter(test: &str) -> Option<Watchdog> {
    if !is_child(test) {
        return None;
    }
    // A child that is meant to abort should not leave a core file behind.
    super::sys::no_core_file();
    Some(watchdog_after(Duration::from_secs(60)))
}

/// Runs `body` in a child process with `variables` set, and asserts that it ends well.
///
/// `test` must be the name of the calling test: the child comes by here again.
pub fn isolated(test: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    if let Some(_watchdog) = enter(test) {
        body();
        return;
    }
    let output = run(test, variables);
    assert!(output.status.success(), "{}", report(&output));
}

/// Runs the test called `test` as a child with `variables` set, to its end.
pub fn run(test: &str, variables: &[(&str, &str)]) -> Output {
    command(test)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

/// The outcome of a child for a failed assertion.
pub fn report(output: &Output) -> String {
    format!(
        "child ended with {}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
