//! One thread: all that is known about it.

use std::sync::Arc;

use pirn_dump::{Dump, Scope, Thread, show};
use serde::Serialize;

use super::looked::{Made, all_threads, grouped};
use super::row::{Row, StackView, Words, cut};
use crate::Console;
use crate::request::Query;
use pirn_live::Snapshot;

/// How many of the threads that wait for this one are listed.
const WAITERS: usize = 20;
/// No program nests scopes deeper. A circle would have no end.
const DEEP: usize = 64;

/// The answer to `thread`.
#[derive(Serialize)]
pub struct ThreadView {
    #[serde(flatten)]
    made: Made,
    /// None if there is no such thread.
    thread: Option<About>,
    /// Whether each thread was looked at, so that one that is not there has ended.
    whole: bool,
}

#[derive(Serialize)]
struct About {
    #[serde(flatten)]
    row: Row,
    /// The whole of the name, and of what it waits for.
    full_name: Option<String>,
    full_waits: String,
    wait: &'static str,
    object: Option<String>,
    place: Option<String>,
    stack: Option<StackView>,
    mounts: u64,
    stack_bytes: Option<u32>,
    is_virtual: bool,
    /// The scopes it is in, from the innermost.
    scopes: Vec<ScopeName>,
    /// What has to happen for its wait to end, thread by thread.
    chain: Vec<Row>,
    /// Threads that wait for this one, and how many there are.
    waiters: Vec<Row>,
    waiters_all: usize,
}

#[derive(Serialize)]
struct ScopeName {
    id: u64,
    name: Option<String>,
    cancelled: bool,
}

/// Answers with the thread that has the number `id`.
pub fn thread(console: &Console, query: &Query) -> Result<ThreadView, String> {
    let id = query
        .number("id")
        .ok_or("there is no thread with this number")?;
    let snapshot = find(console, id, query)?;
    let thread = snapshot.thread(id);
    Ok(ThreadView {
        made: Made::of(&snapshot),
        thread: thread.map(|thread| about(thread, &snapshot)),
        whole: snapshot.dump.lists_all(),
    })
}

/// Returns a dump with the thread. Groups have it if it is one of few; `now` asks for all threads
/// in any case.
fn find(console: &Console, id: u64, query: &Query) -> Result<Arc<Snapshot>, String> {
    let groups = grouped(&console.live)?;
    let lists = groups.dump.lists_all();
    if lists || query.text("now").is_empty() && groups.thread(id).is_some() {
        return Ok(groups);
    }
    all_threads(console, query)
}

fn about(thread: &Thread, snapshot: &Snapshot) -> About {
    let (dump, names) = (&snapshot.dump, &snapshot.names);
    let words = Words(snapshot);
    let row = |thread: &Thread| Row::of(thread, dump, &words);
    let waits_for = |other: &&Thread| other.wait.owner() == Some(thread.id);
    let waiters = dump.threads.iter().filter(waits_for);
    let place = thread
        .place
        .and_then(|index| dump.places.get(index as usize));
    About {
        row: row(thread),
        full_name: thread.name.as_deref().map(show::plain),
        full_waits: words.wait(&thread.wait),
        wait: thread.wait.kind().word(),
        object: thread.wait.object().map(|object| format!("{object:#x}")),
        place: place.map(|place| {
            let file = show::plain(place.file.as_bytes());
            format!("{file}:{}:{}", place.line, place.column)
        }),
        stack: StackView::of(thread.stack, dump, names),
        mounts: thread.mounts,
        stack_bytes: thread.stack_bytes,
        is_virtual: thread.is_virtual,
        scopes: scopes(thread, dump),
        chain: chain(thread, dump).into_iter().map(row).collect(),
        waiters_all: waiters.clone().count(),
        waiters: waiters.take(WAITERS).map(row).collect(),
    }
}

/// Returns the scopes around a thread, innermost first.
fn scopes(thread: &Thread, dump: &Dump) -> Vec<ScopeName> {
    let named = |id: u64| dump.scopes.iter().find(|scope| scope.id == id);
    let around = |scope: &&Scope| scope.parent.and_then(named);
    let scopes = std::iter::successors(thread.scope.and_then(named), around);
    let scopes = scopes.take(DEEP).map(|scope| ScopeName {
        id: scope.id,
        name: scope
            .name
            .as_deref()
            .map(|name| cut(&show::plain(name.as_bytes()))),
        cancelled: scope.cancelled,
    });
    scopes.collect()
}

/// Returns the threads that this one waits for, one for the other, up to the first that is there
/// twice.
fn chain<'a>(thread: &Thread, dump: &'a Dump) -> Vec<&'a Thread> {
    let mut chain: Vec<&Thread> = Vec::new();
    let mut next = thread.wait.owner();
    while let Some(id) = next {
        let Some(owner) = dump.threads.iter().find(|it| it.id == id) else {
            break;
        };
        let again = owner.id == thread.id || chain.iter().any(|it| it.id == owner.id);
        chain.push(owner);
        if again {
            break;
        }
        next = owner.wait.owner();
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use pirn_dump::Wait;

    fn dump() -> Dump {
        let waits = |id, thread| Thread {
            id,
            wait: Wait::Join { thread },
            scope: Some(id),
            ..Thread::default()
        };
        let scope = |id, parent| Scope {
            id,
            parent: Some(parent),
            ..Scope::default()
        };
        Dump {
            threads: vec![waits(1, 2), waits(2, 3), waits(3, 2), waits(4, 9)],
            scopes: vec![scope(1, 2), scope(2, 1), scope(3, 7)],
            ..Dump::default()
        }
    }

    #[test]
    fn circles_have_an_end() {
        let dump = dump();
        let ids = |thread: usize| -> Vec<u64> {
            chain(&dump.threads[thread], &dump)
                .iter()
                .map(|it| it.id)
                .collect()
        };
        assert_eq!(ids(0), [2, 3, 2]);
        assert_eq!(ids(1), [3, 2]);
        assert_eq!(ids(3), [0; 0], "thread 9 is not there");
        assert_eq!(scopes(&dump.threads[0], &dump).len(), DEEP);
        assert_eq!(scopes(&dump.threads[2], &dump).len(), 1);
        assert_eq!(scopes(&dump.threads[3], &dump).len(), 0);
    }
}
