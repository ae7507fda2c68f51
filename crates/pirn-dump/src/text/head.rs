//! The first lines: which process, how many threads, what the carriers do, what was noticed.

use super::escape::Plain;
use super::words::{Bytes, Count, Duration, People, Time, counted};
use crate::model::{CarrierState, State};
use crate::view::Shown;
use std::io::{self, Write};

pub(super) fn write(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    let process = &shown.dump.process;
    writeln!(
        out,
        "{} of process {}, {}, at {} in {}",
        Plain(process.version.as_bytes()),
        process.pid,
        Plain(process.program.as_bytes()),
        Time(process.end),
        Duration(process.end.saturating_sub(process.begin)),
    )?;
    write_totals(shown, out)?;
    write_carriers(shown, out)?;
    if !shown.dump.memory.is_empty() {
        let uses = shown.dump.memory.iter();
        let uses: Vec<String> = uses
            .map(|it| format!("{} {}", Plain(it.name.as_bytes()), Bytes(it.bytes)))
            .collect();
        writeln!(out, "memory: {}", uses.join(", "))?;
    }
    for finding in &shown.dump.findings {
        writeln!(
            out,
            "{}: {}",
            Plain(finding.kind.as_bytes()),
            Plain(finding.text.as_bytes())
        )?;
    }
    Ok(())
}

fn write_totals(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    let totals = &shown.dump.totals;
    let states: Vec<String> = State::ALL
        .into_iter()
        .zip(totals.by_state)
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| format!("{} {}", Count(count), state.word()))
        .collect();
    write!(out, "{}", counted(totals.listed, "virtual thread"))?;
    if !states.is_empty() {
        write!(out, ": {}", states.join(", "))?;
    }
    for (count, what) in [
        (totals.unlisted_new, "spawned and not run yet"),
        (
            totals.unclaimed,
            "without a stack here, because they ran or were about to",
        ),
        (totals.cut, "left out"),
    ] {
        if count > 0 {
            write!(out, "; {} {what}", Count(count))?;
        }
    }
    writeln!(
        out,
        "; {} started, {} ended",
        Count(totals.started),
        Count(totals.ended)
    )
}

fn write_carriers(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    let carriers = &shown.dump.carriers;
    if carriers.is_empty() {
        return Ok(());
    }
    let states: Vec<String> = CarrierState::ALL
        .into_iter()
        .map(|state| {
            (
                state,
                carriers.iter().filter(|it| it.state == state).count(),
            )
        })
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| format!("{count} {}", state.word()))
        .collect();
    let spare = carriers.iter().filter(|it| it.spare).count();
    write!(
        out,
        "{}: {}",
        counted(carriers.len() as u64, "carrier"),
        states.join(", ")
    )?;
    writeln!(
        out,
        "; {spare} spare, parallelism {}",
        shown.dump.process.parallelism
    )?;
    let people = People::of(shown.dump);
    for carrier in carriers.iter().filter(|it| it.state == CarrierState::Stuck) {
        let thread = carrier
            .thread
            .map_or_else(|| "no thread".to_string(), |id| people.called(id));
        writeln!(
            out,
            "carrier {} (tid {}) is stuck with {thread}",
            carrier.number, carrier.tid
        )?;
    }
    Ok(())
}
