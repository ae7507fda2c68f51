//! Other programs: started, waited for, and what they took.

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The times that programs took, in seconds, and their outcome.
pub struct Cost {
    pub wall: f64,
    /// In user and in kernel mode, with their own children.
    pub processor: f64,
    pub done: u64,
}

/// Runs programs, and measures them. Meanwhile there must be no others.
pub fn cost(run: impl FnOnce() -> Result<u64>) -> Result<Cost> {
    let before = processor_time()?;
    let start = Instant::now();
    let done = run()?;
    let wall = start.elapsed().as_secs_f64();
    Ok(Cost {
        wall,
        processor: processor_time()? - before,
        done,
    })
}

/// Processor time of all children that have ended.
fn processor_time() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("cannot read the children's times")?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// What a program prints.
///
/// # Errors
///
/// If it cannot be started, or fails.
pub fn output(command: &mut Command) -> Result<String> {
    let name = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {name}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{name} ended with {}: {complaint}",
        output.status
    );
    ensure!(complaint.is_empty(), "{name} complained: {complaint}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The number that a program prints.
pub fn number(command: &mut Command) -> Result<u64> {
    let text = output(command)?;
    let number = text.trim().parse();
    number.with_context(|| format!("{command:?} printed {text:?} instead of a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_takes_time_and_prints_a_number() {
        let script = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; echo $i";
        let cost = cost(|| number(Command::new("sh").args(["-c", script]))).unwrap();
        assert_eq!(cost.done, 20_000);
        assert!(cost.wall > 0.0 && cost.processor > 0.0);
    }

    #[test]
    fn a_failure_is_an_error_with_what_was_said() {
        for script in ["echo why >&2; exit 3", "echo why >&2"] {
            let error = output(Command::new("sh").args(["-c", script])).unwrap_err();
            assert!(error.to_string().contains("why"), "{error}");
        }
    }
}
