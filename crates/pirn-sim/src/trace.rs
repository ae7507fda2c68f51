//! A run, step by step: as text, or for Perfetto, with a track for each thread, below its node.

use crate::failure::thread;
use crate::run::Report;
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
        let kind = step
            .kind
            .map_or("waits".to_owned(), |kind| format!("{kind:?}"));
        let place = &step.place;
        let at = seconds(step.at);
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
    let micros = |nanos: u64| format!("{}.{:03}", nanos / 1000, nanos % 1000);
    let mut events = Vec::new();
    for (number, it) in (0..).zip(&report.threads) {
        let (name, node) = (text_of(&thread(report, number)), it.node);
        events.push(format!(
            r#"{{"ph":"M","pid":{node},"tid":{number},"name":"thread_name","args":{{"name":{name}}}}}"#
        ));
    }
    let mut nodes: Vec<_> = report.threads.iter().map(|it| it.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    for node in nodes {
        let name = text_of(&crate::net::name_of(node));
        events.push(format!(
            r#"{{"ph":"M","pid":{node},"tid":0,"name":"process_name","args":{{"name":{name}}}}}"#
        ));
    }
    for (step, next) in report.trace.iter().zip(report.trace.iter().skip(1)) {
        // The place is the one at which the slice ends.
        let place = text_of(&next.place);
        let end = next
            .kind
            .map_or("waits".to_owned(), |kind| format!("{kind:?}"));
        let (number, node) = (step.to, node(step.to));
        let (at, length) = (micros(step.at), micros(next.at - step.at));
        let slice = format!(r#""ph":"X","pid":{node},"tid":{number},"ts":{at},"dur":{length}"#);
        events.push(format!(
            r#"{{{slice},"name":"{end}","args":{{"until":{place}}}}}"#
        ));
    }
    for (at, what) in &report.faults {
        let (at, what) = (micros(*at), text_of(what));
        events.push(format!(
            r#"{{"ph":"i","s":"g","pid":0,"tid":0,"ts":{at},"name":{what}}}"#
        ));
    }
    format!("{{\"traceEvents\":[\n{}\n]}}\n", events.join(",\n"))
}

/// Returns a string of JSON.
fn text_of(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out.extend(format!("\\u{:04x}", c as u32).chars()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
