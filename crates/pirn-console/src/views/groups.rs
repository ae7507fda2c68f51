//! Threads that are alike, and what the dump says besides.

use pirn_dump::{CarrierState, Dump, Group, State, show};
use serde::Serialize;

use super::looked::{Looked, Made};
use super::row::{Row, StackView, Words};
use crate::Console;
use crate::request::Query;

/// How many groups are sent unless the page asks for more.
const MAX: u64 = 100;

/// The answer to `groups`.
#[derive(Serialize)]
pub struct Groups {
    #[serde(flatten)]
    made: Made,
    totals: Totals,
    groups: Vec<GroupView>,
    /// How many groups and threads are not in the list.
    groups_left: usize,
    threads_left: u64,
    findings: Vec<Finding>,
    carriers: Vec<Carrier>,
}

#[derive(Serialize)]
struct Totals {
    listed: u64,
    states: Vec<(&'static str, u64)>,
    not_run_yet: u64,
    unclaimed: u64,
    cut: u64,
}

#[derive(Serialize)]
struct GroupView {
    /// The same in each dump.
    key: String,
    count: u64,
    state: &'static str,
    /// The kind of wait, for conditions, and in words.
    wait: &'static str,
    waits: &'static str,
    /// What the futex belongs to, if it is one and the stack tells.
    futex: Option<&'static str>,
    timed: bool,
    /// What all of them wait for, if it is the same, for conditions.
    object: Option<String>,
    oldest: Option<f64>,
    /// Where they were spawned.
    place: Option<String>,
    stack: Option<StackView>,
    examples: Vec<Row>,
}

#[derive(Serialize)]
struct Finding {
    kind: String,
    text: String,
    threads: Vec<u64>,
}

#[derive(Serialize)]
struct Carrier {
    number: u32,
    state: &'static str,
    thread: Option<u64>,
    name: Option<String>,
}

/// Answers with the groups that the conditions `where` choose.
pub fn groups(console: &Console, query: &Query) -> Result<Groups, String> {
    let looked = Looked::by(console, query)?;
    let (dump, snapshot) = (looked.dump(), looked.snapshot());
    let words = Words(snapshot);
    let max = query.number("max").unwrap_or(MAX) as usize;
    let keys = looked.keys();
    let shown = dump.groups.iter().zip(keys.iter()).take(max);
    let groups: Vec<GroupView> = shown
        .map(|(group, key)| GroupView {
            key: format!("{key:016x}"),
            stack: StackView::of(group.stack, dump, &snapshot.names),
            ..view(group, dump, &words)
        })
        .collect();
    let rest = dump.groups.get(groups.len()..).unwrap_or_default();
    Ok(Groups {
        made: Made::of(snapshot),
        totals: totals(dump),
        groups_left: rest.len(),
        threads_left: rest.iter().map(|group| group.count).sum(),
        groups,
        findings: findings(&snapshot.dump),
        carriers: carriers(&snapshot.dump, &words),
    })
}

fn view(group: &Group, dump: &Dump, words: &Words<'_>) -> GroupView {
    let place = group
        .place
        .and_then(|index| dump.places.get(index as usize));
    let examples = group
        .examples
        .iter()
        .filter_map(|index| dump.threads.get(*index as usize));
    let since = |since: u64| dump.process.end.saturating_sub(since) as f64 / 1e9;
    GroupView {
        key: String::new(),
        count: group.count,
        state: group.state.word(),
        wait: group.wait.word(),
        waits: match group.state {
            State::Waiting => show::kind(group.wait),
            _ => "",
        },
        futex: show::futex(group, dump, &words.0.names),
        timed: group.timed,
        object: group.object.map(|object| format!("{object:#x}")),
        oldest: group.oldest.map(since),
        place: place.map(|place| {
            let file = show::plain(place.file.as_bytes());
            format!("{file}:{}", place.line)
        }),
        stack: None,
        examples: examples
            .map(|thread| Row::of(thread, dump, words))
            .collect(),
    }
}

fn totals(dump: &Dump) -> Totals {
    let totals = &dump.totals;
    Totals {
        listed: totals.listed,
        states: State::ALL
            .iter()
            .map(|state| state.word())
            .zip(totals.by_state)
            .collect(),
        not_run_yet: totals.unlisted_new,
        unclaimed: totals.unclaimed,
        cut: totals.cut,
    }
}

/// What the process noticed, and carriers that are stuck.
fn findings(dump: &Dump) -> Vec<Finding> {
    let noticed = dump.findings.iter().map(|finding| Finding {
        kind: show::plain(finding.kind.as_bytes()),
        text: show::plain(finding.text.as_bytes()),
        threads: finding.threads.iter().take(20).copied().collect(),
    });
    let stuck = dump
        .carriers
        .iter()
        .filter(|it| it.state == CarrierState::Stuck);
    let stuck = stuck.map(|carrier| Finding {
        kind: "stuck-carrier".into(),
        text: format!(
            "carrier {} (OS thread {}) has carried the same thread for long",
            carrier.number, carrier.tid
        ),
        threads: carrier.thread.into_iter().collect(),
    });
    noticed.chain(stuck).collect()
}

fn carriers(dump: &Dump, words: &Words<'_>) -> Vec<Carrier> {
    let carriers = dump.carriers.iter().map(|carrier| Carrier {
        number: carrier.number,
        state: carrier.state.word(),
        thread: carrier.thread,
        name: carrier.thread.and_then(|id| words.name(id)),
    });
    carriers.collect()
}
