//! A run, step by step: as text, or for Perfetto, with a track for each thread, below its node.

use crate::failure::thread;
use crate::net::name_of;
use crate::run::Report;
use crate::world::Step;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};

/// Shows a run whose report has the trace: on standard error, or in a file.
pub(crate) fn show(report: &Report, to: &str) {
    let result = match to {
        "1" => io::stderr().write_all(text(report).as_bytes()),
        path => fs::write(path, perfetto(report)),
    };
    if let Err(error) = result {
        panic!("pirn: cannot write the trace to {to}: {error}");
    }
}

/// Stops the process, before the step with this number.
pub(crate) fn stop(step: u64) {
    let pid = std::process::id();
    let mut errors = io::stderr();
    let _ = writeln!(
        errors,
        "pirn: stopped before step {step}. Look: gdb -p {pid}, or pirn dump --outside {pid}. \
         Go on: kill -CONT {pid}"
    );
    // SAFETY: no pointers.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

/// Returns a line for each step, and for each fault.
fn text(report: &Report) -> String {
    let mut faults = report.faults.iter().peekable();
    let mut out = String::new();
    for (number, step) in (1..).zip(&report.trace) {
        while let Some((at, what)) = faults.next_if(|it| it.0 <= step.at) {
            let _ = writeln!(out, "            {} {what}", seconds(*at));
        }
        let [from, to] = [step.from, step.to].map(|number| thread(report, number));
        let (kind, place, at) = (kind(step), &step.place, seconds(step.at));
        let _ = writeln!(out, "step {number:6} {at} {from} {kind} {place} -> {to}");
    }
    out
}

fn seconds(nanos: u64) -> String {
    format!("{}.{:09} s", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// Returns the run in Chrome's JSON format for traces, which Perfetto opens: a node is a process, a
/// thread's slices are the times in which it ran.
fn perfetto(report: &Report) -> String {
    let node = |number: u32| report.threads.get(number as usize).map_or(0, |it| it.node);
    let micros = |nanos: u64| nanos as f64 / 1000.0;
    let mut events = Vec::new();
    for (number, it) in (0..).zip(&report.threads) {
        let name = json!({ "name": thread(report, number) });
        events.push(
            json!({ "ph": "M", "pid": it.node, "tid": number, "name": "thread_name", "args": name }),
        );
    }
    let nodes: BTreeSet<_> = report.threads.iter().map(|it| it.node).collect();
    for node in nodes {
        let name = json!({ "name": name_of(node) });
        events.push(
            json!({ "ph": "M", "pid": node, "tid": 0, "name": "process_name", "args": name }),
        );
    }
    for (step, next) in report.trace.iter().zip(report.trace.iter().skip(1)) {
        events.push(json!({
            "ph": "X",
            "pid": node(step.to),
            "tid": step.to,
            "ts": micros(step.at),
            "dur": micros(next.at - step.at),
            "name": kind(next),
            // The place is the one at which the slice ends.
            "args": { "until": next.place },
        }));
    }
    for (at, what) in &report.faults {
        events.push(
            json!({ "ph": "i", "s": "g", "pid": 0, "tid": 0, "ts": micros(*at), "name": what }),
        );
    }
    json!({ "traceEvents": events }).to_string()
}

/// Returns at what kind of point the thread was left.
fn kind(step: &Step) -> String {
    let kind = step.kind.map(|kind| format!("{kind:?}"));
    kind.unwrap_or_else(|| "waits".to_owned())
}
