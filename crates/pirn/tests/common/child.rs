//! Runs the running test again in a child process.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{SKIPPED, TEST};

/// Set in the child to the name of the test that it runs.
const VARIABLE: &str = "PIRN_TEST_CHILD";

/// Returns the name of the running test, as the test harness knows it.
fn test() -> &'static str {
    TEST.get()
        .expect("only the thread of a test with #[watched] has children")
}

/// Returns whether this process is the child of the running test.
pub fn is_here() -> bool {
    env::var_os(VARIABLE).is_some_and(|value| value == OsStr::new(test()))
}

/// Returns a command that runs only the running test, as a child.
pub fn command() -> Command {
    command_of(&env::current_exe().unwrap())
}

/// The same, with `program`, a copy of this one.
pub fn command_of(program: &Path) -> Command {
    let test = test();
    let mut command = Command::new(program);
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, test)
        .stdin(Stdio::null());
    command
}

/// Runs `body` in a child process with `variables` set, and asserts that it ends well.
///
/// The child runs the test from its beginning and comes by here again.
pub fn isolated(variables: &[(&str, &str)], body: impl FnOnce()) {
    if is_here() {
        return body();
    }
    let output = run(variables);
    assert!(output.status.success(), "{}", report(&output));
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        if line.starts_with(SKIPPED) {
            super::report(line);
        }
    }
}

/// Runs `body` in a child process for each of `settings`, one after another.
///
/// If the tests run with a number of carriers that is set from outside, as by `ci/loops`, only for
/// the settings with this number, if there are any: the loops come by with each of them.
pub fn isolated_each<S>(settings: impl IntoIterator<Item = S>, body: impl Fn())
where
    S: AsRef<[(&'static str, &'static str)]>,
{
    let mut settings: Vec<S> = settings.into_iter().collect();
    let from_outside = env::var("PIRN_PARALLELISM");
    let matches = |setting: &S| {
        let mut variables = setting.as_ref().iter();
        variables.any(|&(name, value)| {
            name == "PIRN_PARALLELISM" && Ok(value) == from_outside.as_deref()
        })
    };
    if settings.iter().any(matches) {
        settings.retain(matches);
    }
    for variables in settings {
        isolated(variables.as_ref(), &body);
        if is_here() {
            return; // this child is one of them
        }
    }
}

/// Runs `body` in child processes with this many carriers.
pub fn with_carriers(counts: &[&'static str], body: impl Fn()) {
    let setting = |&count| [("PIRN_PARALLELISM", count)];
    isolated_each(counts.iter().map(setting), body);
}

/// Runs the running test as a child with `variables` set, to its end.
pub fn run(variables: &[(&str, &str)]) -> Output {
    command().envs(variables.iter().copied()).output().unwrap()
}

/// Returns the outcome of a child for a failed assertion.
pub fn report(output: &Output) -> String {
    format!(
        "child ended with {}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
