//! 100,000 virtual threads that sleep a second and print a line to a pipe.
//!
//! They live in a helper process, whose output this workload reads and checks line by line.

use crate::process;
use crate::workload::{Sample, Size, Workload};
use anyhow::{Context, Result, ensure};
use pirn::thread;
use std::io::Read;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

pub struct Sleepers;

impl Workload for Sleepers {
    fn name(&self) -> &'static str {
        "sleepers"
    }

    fn about(&self) -> &'static str {
        "100,000 virtual threads each sleep 1 s and print a line to a pipe"
    }

    fn warm_bytes(&self) -> usize {
        2 << 30
    }

    fn round(&self, size: Size) -> Result<Vec<Sample>> {
        let count = size.pick(100_000, 100);
        let start = Instant::now();
        let mut helper = process::helper(self, count)?.spawn()?;
        let mut output = Vec::with_capacity(count * 7);
        helper
            .stdout
            .take()
            .context("no pipe")?
            .read_to_end(&mut output)?;
        let status = helper.wait()?;
        let whole = start.elapsed();

        ensure!(
            status.success(),
            "the process of the sleepers ended with {status} (see above)"
        );
        let wall = check(&output, count)?;
        Ok(vec![
            Sample::new("first spawn to last join", wall.as_secs_f64(), "s").goals(&[1.06]),
            Sample::new("whole process, with warm-up", whole.as_secs_f64(), "s"),
        ])
    }

    fn helper(&self, count: usize) -> Result<()> {
        warm_up(count);
        let start = Instant::now();
        let mut threads = Vec::with_capacity(count);
        for i in 0..count {
            let spawned = thread::Builder::new().spawn(move || {
                thread::sleep(Duration::from_secs(1));
                println!("{i}");
            });
            threads.push(spawned.with_context(|| format!("cannot spawn thread {i} of {count}"))?);
        }
        for thread in threads {
            thread.join().expect("the thread only sleeps and prints");
        }
        println!("{LAST_LINE}{}", start.elapsed().as_nanos());
        Ok(())
    }
}

/// Begins the lines of the warm-up.
const WARM_UP: char = '~';

/// Has as many threads at once as there will be sleepers, each as deep in its stack as they will be, so that the
/// measured ones find memory that the system has given to this process already.
fn warm_up(count: usize) {
    let all = Arc::new(Barrier::new(count));
    let threads: Vec<_> = (0..count)
        .map(|i| {
            let all = Arc::clone(&all);
            thread::spawn(move || {
                all.wait();
                println!("{WARM_UP}{i}");
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("the thread only waits");
    }
}

/// Begins the line after the sleepers' own; the nanoseconds they took follow.
const LAST_LINE: &str = "all done after ns: ";

/// Checks that every sleeper has printed its number once; gives the time they took.
fn check(output: &[u8], count: usize) -> Result<Duration> {
    let output = std::str::from_utf8(output)?;
    let mut seen = vec![false; count];
    let mut lines = output.lines().filter(|line| !line.starts_with(WARM_UP));
    for line in lines.by_ref().take(count) {
        let number: usize = line.parse().with_context(|| format!("odd line {line:?}"))?;
        let seen = seen
            .get_mut(number)
            .with_context(|| format!("odd number {number}"))?;
        ensure!(!*seen, "the line {number} came twice");
        *seen = true;
    }
    let missing = seen.iter().filter(|seen| !**seen).count();
    ensure!(missing == 0, "{missing} of {count} lines are missing");
    let last = lines.next().and_then(|line| line.strip_prefix(LAST_LINE));
    let nanos = last.context("the last line is missing")?.parse()?;
    ensure!(lines.next().is_none(), "there are more lines than sleepers");
    let took = Duration::from_nanos(nanos);
    ensure!(took >= Duration::from_secs(1), "they slept only {took:?}");
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(output: &str) -> String {
        match check(output.as_bytes(), 2) {
            Ok(took) => format!("{took:?}"),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn every_line_is_checked() {
        assert_eq!(checked("1\n0\nall done after ns: 1250000000\n"), "1.25s");
        assert_eq!(
            checked("1\n1\nall done after ns: 1250000000\n"),
            "the line 1 came twice"
        );
        assert_eq!(checked("1\n"), "1 of 2 lines are missing");
        assert_eq!(checked("1\n0\n"), "the last line is missing");
        assert_eq!(checked("1\n2\n"), "odd number 2");
        assert!(checked("1\n0\nall done after ns: 9\n").contains("slept only"));
        assert!(checked("10\n\n").contains("odd"));
        assert!(checked("1\n0\nall done after ns: 1250000000\n0\n").contains("more lines"));
    }
}
