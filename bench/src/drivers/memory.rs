//! Drivers that measure the memory of a peer whose threads wait.

use super::{Round, Sample, work};
use crate::machine::room_for_os_threads;
use crate::memory::{Footprint, available};
use crate::process::Process;
use crate::protocol::Output;
use anyhow::{Context, Result, ensure};

/// Threads wait in one place; the memory that they use is divided by their number. The peer
/// measures the rest.
pub fn parked(process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
    let before = process.footprint()?;
    let mut growth = None;
    let mut samples = work(process, &mut Output::default(), |process, at, count| {
        ensure!(count > 0, "it stands still at {at:?} without threads");
        growth = Some((Footprint::of(process.id())?.since(before), count as f64));
        Ok("go".into())
    })?;
    let (taken, count) = growth.context("it did not stand still")?;
    let other_size = *round.params != round.case.params;
    let remark = other_size.then(|| format!("with {count} threads"));
    samples.push(Sample::new("bytes", taken.total() as f64 / count).remark(remark));
    samples.push(Sample::new("of it kernel", taken.kernel as f64 / count));
    Ok(samples)
}

/// How many threads wait when they have used up a budget of memory.
pub fn most_parked(process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
    let budget = round.get("mib") << 20;
    let before = process.footprint()?;
    let mut most = 0;
    let mut limit = None;
    let room = match round.peer.kind.os_threads {
        true => room_for_os_threads(),
        false => (u64::MAX, ""),
    };
    let done = work(process, &mut Output::default(), |process, _, count| {
        let taken = Footprint::of(process.id())?.since(before).total();
        if taken <= budget {
            most = count;
        }
        let mut more = more(budget, count, taken);
        if count + more > room.0 {
            more = room.0.saturating_sub(count);
            let (room, setting) = room;
            limit = Some(format!(
                "no more than {room} OS threads were tried here, for {setting}"
            ));
        }
        ensure!(
            available()? > 1 << 30,
            "the machine has less than 1 GiB of memory left"
        );
        Ok(match more {
            0 => "go".into(),
            more => format!("more {more}"),
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
    Ok(vec![
        Sample::new("most threads", most as f64).remark(remark),
    ])
}

/// Returns how many more threads to start if `count` of them take up `taken` bytes.
fn more(budget: u64, count: u64, taken: u64) -> u64 {
    let left = budget.saturating_sub(taken);
    let each = (taken / count).max(1);
    // The estimate may be wrong, and memory beyond the budget does not count.
    let more = left / each * 9 / 10;
    if more < count / 50 { 0 } else { more }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_budget_is_approached_from_below_until_little_is_left() {
        let more = |count, taken| super::more(1_000_000, count, taken);
        assert_eq!(more(100, 100_000), 810);
        assert_eq!(more(910, 910_000), 81);
        assert_eq!(more(991, 991_000), 0);
        assert_eq!(more(2000, 2_000_000), 0);
    }
}
