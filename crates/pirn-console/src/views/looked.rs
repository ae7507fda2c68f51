//! Taking a look at the threads: the newest dump, filtered.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pirn_dump::{Dump, Filter};
use serde::Serialize;

use crate::Console;
use crate::request::Query;
use crate::watchers::ALL;
use pirn_live::{Live, Snapshot, Status, Want};

/// How long a page waits for its first dump, and for one that it asks for by a button.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How long it waits for one in place of one that it could be shown at once.
const SHORT: Duration = Duration::from_secs(3);
/// A dump that is younger is new enough: the next one comes by itself.
const FRESH: Duration = Duration::from_secs(5);

/// A dump, and what was chosen of it.
pub struct Looked {
    snapshot: Arc<Snapshot>,
    /// What the filter has left, if there is one.
    chosen: Option<Dump>,
}

impl Looked {
    /// Looks at groups, or at single threads if the conditions `where` are about these.
    pub fn by(console: &Console, query: &Query) -> Result<Looked, String> {
        let filter: Filter = query
            .text("where")
            .parse()
            .map_err(|error| format!("{error}"))?;
        let all = filter.needs_all_threads();
        let snapshot = if all {
            all_threads(console, query)?
        } else {
            grouped(&console.live)?
        };
        Looked::at(snapshot, &filter)
    }

    /// Looks at single threads.
    pub fn at_threads(console: &Console, query: &Query) -> Result<Looked, String> {
        let filter: Filter = query
            .text("where")
            .parse()
            .map_err(|error| format!("{error}"))?;
        Looked::at(all_threads(console, query)?, &filter)
    }

    fn at(snapshot: Arc<Snapshot>, filter: &Filter) -> Result<Looked, String> {
        let chosen = (!filter.is_empty()).then(|| filter.choose(&snapshot.dump, &snapshot.names));
        let chosen = chosen.transpose().map_err(|error| error.to_string())?;
        Ok(Looked { snapshot, chosen })
    }

    /// The dump with what was chosen.
    pub fn dump(&self) -> &Dump {
        self.chosen.as_ref().unwrap_or(&self.snapshot.dump)
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The keys of the groups that were chosen.
    pub fn keys(&self) -> Cow<'_, [u64]> {
        match &self.chosen {
            None => Cow::Borrowed(&self.snapshot.keys),
            Some(dump) => Cow::Owned(pirn_live::keys(dump, &self.snapshot.names)),
        }
    }
}

/// Returns the newest dump, whether or not it lists each thread. While a page is connected, new
/// ones are taken all the time.
pub fn newest(live: &Live) -> Option<Arc<Snapshot>> {
    let dumps = [live.snapshot(Want::Examples), live.snapshot(ALL)];
    dumps
        .into_iter()
        .flatten()
        .max_by_key(|snapshot| snapshot.number)
}

/// The same; waits for the first one.
pub fn grouped(live: &Live) -> Result<Arc<Snapshot>, String> {
    match newest(live) {
        Some(snapshot) => Ok(snapshot),
        None => live.fresh(Want::Examples, PATIENCE),
    }
}

/// Returns a dump of each thread. If there are very many threads, only if `now` says that the user
/// asks for it, and has read what it costs.
pub fn all_threads(console: &Console, query: &Query) -> Result<Arc<Snapshot>, String> {
    let asked = !query.text("now").is_empty();
    if console.watchers.are_many() && !asked {
        return console.live.snapshot(ALL).ok_or_else(|| "many".to_string());
    }
    console.watchers.asks_for_threads();
    match console.live.snapshot(ALL) {
        Some(known) if known.taken.elapsed() < FRESH => Ok(known),
        _ => whole(&console.live, if asked { PATIENCE } else { SHORT }),
    }
}

/// Returns a dump of each thread that is taken from now on, unless the process cannot bear one in
/// time, or has ended: then the last one.
pub fn whole(live: &Live, patience: Duration) -> Result<Arc<Snapshot>, String> {
    let Some(known) = live.snapshot(ALL) else {
        return live.fresh(ALL, PATIENCE);
    };
    let deadline = Instant::now() + patience;
    loop {
        let revision = live.revision();
        let newest = live.snapshot(ALL).unwrap_or_else(|| Arc::clone(&known));
        let left = deadline.saturating_duration_since(Instant::now());
        let ended = matches!(live.status(), Status::Ended(_));
        if newest.number > known.number || ended || left.is_zero() {
            return Ok(newest);
        }
        // It asks for one, and returns the last at once while the process must rest.
        let _ = live.fresh(ALL, left);
        live.wait(revision, left);
    }
}

/// What is to be said about each dump.
#[derive(Serialize)]
pub struct Made {
    number: u64,
    /// In milliseconds since 1970.
    time: u64,
    /// How long the process took, and how long until it had names.
    process_ms: f64,
    took_ms: f64,
    problems: Vec<String>,
}

impl Made {
    pub fn of(snapshot: &Snapshot) -> Made {
        let process = &snapshot.dump.process;
        Made {
            number: snapshot.number,
            time: process.end / 1_000_000,
            process_ms: process.end.saturating_sub(process.begin) as f64 / 1e6,
            took_ms: snapshot.took.as_secs_f64() * 1e3,
            problems: snapshot.problems.clone(),
        }
    }
}
