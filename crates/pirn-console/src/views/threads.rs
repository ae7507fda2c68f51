//! Single threads that meet conditions.

use serde::Serialize;

use super::looked::{Looked, Made};
use super::row::{Row, Words};
use crate::Console;
use crate::request::Query;

/// How many threads are sent unless the page asks for another number, and at most.
const MAX: u64 = 200;
const LIMIT: u64 = 5_000;

/// The answer to `threads`.
#[derive(Serialize)]
pub struct Threads {
    #[serde(flatten)]
    made: Made,
    /// How many meet the conditions.
    all: usize,
    /// How many could not be looked at, because there are more than a dump lists.
    cut: u64,
    threads: Vec<Row>,
}

/// Answers with the threads that the conditions `where` choose: those with names first, as their
/// program names what matters.
pub fn threads(console: &Console, query: &Query) -> Result<Threads, String> {
    let looked = Looked::at_threads(console, query)?;
    let (dump, snapshot) = (looked.dump(), looked.snapshot());
    let words = Words(snapshot);
    let max = query.number("max").unwrap_or(MAX).min(LIMIT) as usize;
    let mut chosen: Vec<_> = dump.threads.iter().collect();
    chosen.sort_unstable_by_key(|thread| (thread.name.is_none(), thread.id));
    let rows = chosen
        .iter()
        .take(max)
        .map(|thread| Row::of(thread, dump, &words));
    Ok(Threads {
        made: Made::of(snapshot),
        all: chosen.len(),
        cut: dump.totals.cut,
        threads: rows.collect(),
    })
}
