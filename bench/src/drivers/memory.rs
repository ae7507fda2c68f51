//! Drivers that measure the memory of a peer whose threads wait.

use super::{Driver, Round, Sample, work};
use crate::machine::room_for_os_threads;
use crate::memory::{Footprint, available};
use crate::process::Process;
use anyhow::{Context, Result, ensure};

/// Threads wait in one place; the memory that they use is divided by their number. The peer
/// measures the rest.
pub struct Parked {
    pub at: &'static str,
}

impl Driver for Parked {
    fn round(&self, process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
        let before = process.footprint()?;
        let mut growth = None;
        let mut work = work(process, |process, at, count| {
            ensure!(
                at == self.at && count > 0,
                "it stands still at {at:?} with {count} threads"
            );
            let taken = Footprint::of(process.id())?.since(before);
            growth = Some((taken, count as f64));
            Ok("go".into())
        })?;
        let (taken, count) = growth.context("it did not stand still")?;
        let each = |bytes: u64| bytes as f64 / count;
        let other_size = *round.params != round.case.params;
        work.samples.push(Sample {
            remark: other_size.then(|| format!("with {count} threads")),
            ..Sample::new("bytes", each(taken.total()))
        });
        work.samples
            .push(Sample::new("of it kernel", each(taken.kernel)));
        Ok(work.samples)
    }
}

/// How many threads wait when they have used up a budget of memory.
pub struct MostParked {
    /// In bytes.
    pub budget: u64,
}

impl MostParked {
    /// Returns how many more threads to start if `count` of them take up `taken` bytes.
    fn more(&self, count: u64, taken: u64) -> u64 {
        let left = self.budget.saturating_sub(taken);
        let each = (taken / count).max(1);
        // The estimate may be wrong, and memory beyond the budget does not count.
        let more = left / each * 9 / 10;
        if more < count / 50 { 0 } else { more }
    }
}

impl Driver for MostParked {
    fn round(&self, process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
        let before = process.footprint()?;
        let mut most = 0;
        let mut limit = None;
        let room = match round.peer.kind.os_threads {
            true => room_for_os_threads(),
            false => (u64::MAX, ""),
        };
        let done = work(process, |process, _, count| {
            let taken = Footprint::of(process.id())?.since(before).total();
            if taken <= self.budget {
                most = count;
            }
            let mut more = self.more(count, taken);
            if count + more > room.0 {
                more = room.0.saturating_sub(count);
                limit = Some(format!(
                    "no more than {} OS threads were tried here, for {}",
                    room.0, room.1
                ));
            }
            ensure!(
                available()? > 1 << 30,
                "the machine has less than 1 GiB of memory left"
            );
            Ok(if more == 0 {
                "go".into()
            } else {
                format!("more {more}")
            })
        });
        // The threads that waited before it died count.
        let remark = match done {
            Ok(_) => limit,
            Err(error) if most > 0 => {
                process.abandon();
                Some(format!("with more of them: {error:#}"))
            }
            Err(error) => return Err(error),
        };
        Ok(vec![Sample {
            remark,
            ..Sample::new("most threads", most as f64)
        }])
    }
}

#[cfg(test)]
mod tests;
