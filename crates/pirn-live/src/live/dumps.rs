//! Taking dumps, no more often than the process can easily bear.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pirn_dump::{Dump, Names, Symbols, Thread};

use super::identity::Identity;
use super::keys::keys;
use super::shared::{Shared, State, Status};
use crate::{ask, ends};

/// How long the process may be silent.
const PATIENCE: Duration = Duration::from_secs(30);
/// After a dump the process is left in peace for this many times the dump's duration: dumps cost it
/// a tenth of a processor at most.
const REST: u32 = 10;
/// This process rests for a multiple of the time that it was busy with a dump.
const OWN_REST: u32 = 2;
/// After a dump that failed it is left in peace for this long at least.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// How long the thread sleeps while no dump is wanted; a request wakes it.
const NOTHING_WANTED: Duration = Duration::from_secs(3600);

/// Which threads a dump has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// All groups, and at most three threads of each.
    Examples,
    /// Each thread.
    All {
        /// The number of threads after which the dump ends.
        max: u64,
    },
}

/// A dump with names.
#[derive(Debug)]
pub struct Snapshot {
    /// Groups whose stacks look alike are one. What is at the ends of descriptors is filled in.
    pub dump: Dump,
    /// The names of its frames.
    pub names: Names,
    /// A number for each group, which the same group has in later snapshots.
    pub keys: Vec<u64>,
    /// The threads that the process was asked for.
    pub want: Want,
    /// When it was complete.
    pub taken: Instant,
    /// How long the process took.
    pub took: Duration,
    /// Where each thread is in the dump, by id.
    places: HashMap<u64, u32>,
    /// How often threads had been mounted at the dump of this kind before.
    before: Option<Mounts>,
    /// 1 for the first, and so on.
    pub number: u64,
    /// A line for each file of which there are no names.
    #[allow(dead_code, reason = "for those that have room for it")]
    pub problems: Vec<String>,
}

/// How often threads had been mounted at some time.
#[derive(Debug)]
struct Mounts {
    by_id: HashMap<u64, u64>,
    taken: Instant,
}

impl Snapshot {
    /// Returns the thread with this id.
    pub fn thread(&self, id: u64) -> Option<&Thread> {
        let place = self.places.get(&id)?;
        self.dump.threads.get(*place as usize)
    }

    /// Returns how often per second a thread has been mounted since the last dump of this kind;
    /// `None` if that dump does not have the thread.
    pub fn mounts_per_second(&self, thread: &Thread) -> Option<f64> {
        let before = self.before.as_ref()?;
        // The process counts with 32 bits.
        let mounts = (thread.mounts as u32).wrapping_sub(*before.by_id.get(&thread.id)? as u32);
        let seconds = self
            .taken
            .saturating_duration_since(before.taken)
            .as_secs_f64();
        (seconds > 0.0).then(|| f64::from(mounts) / seconds)
    }

    /// Whether it has what is wanted.
    pub fn has(&self, want: Want) -> bool {
        match (self.want, want) {
            (Want::Examples, Want::Examples) => true,
            (Want::All { max }, Want::All { max: wanted }) => {
                wanted <= max || self.dump.totals.cut == 0
            }
            _ => false,
        }
    }
}

/// Takes dumps as they are wanted, until the `Live` is dropped.
pub(super) fn run(shared: &Shared, identity: &Identity, pace: Duration) {
    let mut symbols = Symbols::of_process(identity.pid);
    // What the last dump of each kind said, examples first.
    let mut mounts = [None, None];
    while let Some(want) = next(shared) {
        let begin = Instant::now();
        let before = &mut mounts[usize::from(want != Want::Examples)];
        let taken = take(identity, want, &mut symbols, before);
        // Finding names takes long the first time. It is this process that is busy then.
        let own = begin.elapsed() * OWN_REST;
        let rest = taken.as_ref().map_or(own, |it| own.max(it.took * REST));
        shared.show(|state| {
            let mut rest = rest.max(pace).max(state.interval);
            match taken {
                Ok(snapshot) => add(state, snapshot),
                Err(why) => {
                    state.failures += 1;
                    state.trouble = Some(why);
                    rest = rest.max(AFTER_FAILURE);
                }
            }
            state.rests_until = Instant::now() + rest;
        });
    }
}

fn add(state: &mut State, mut snapshot: Snapshot) {
    state.dumps += 1;
    snapshot.number = state.dumps;
    let place = match snapshot.want {
        Want::Examples => &mut state.examples,
        Want::All { .. } => &mut state.all,
    };
    *place = Some(Arc::new(snapshot));
    state.trouble = None;
}

/// Waits until a dump is to be taken, and returns of which kind; `None` if there are to be no more.
fn next(shared: &Shared) -> Option<Want> {
    let mut state = shared.lock();
    loop {
        if state.stop || matches!(state.status, Status::Ended(_)) {
            return None;
        }
        let now = Instant::now();
        let rested = now >= state.rests_until;
        // The first of a kind comes at once: a user waits for the page. It makes the next rest
        // longer if it takes long.
        let is_due = |want: Want| rested || state.newest(want).is_none() && state.trouble.is_none();
        if let Some(place) = state.asked.iter().position(|want| is_due(*want)) {
            return Some(state.asked.remove(place));
        }
        if let Some(want) = state.kept.filter(|want| is_due(*want)) {
            return Some(want);
        }
        let patience = match rested {
            true => NOTHING_WANTED,
            false => state.rests_until - now,
        };
        state = shared.wait(state, patience);
    }
}

/// Takes a dump, and finds names.
fn take(
    identity: &Identity,
    want: Want,
    symbols: &mut Symbols,
    before: &mut Option<Mounts>,
) -> Result<Snapshot, String> {
    let begin = Instant::now();
    if !identity.is_there() {
        return Err(format!("process {} has ended", identity.pid));
    }
    let mut dump = ask(identity.pid, want.words(), PATIENCE).map_err(|it| it.to_string())?;
    let took = begin.elapsed();
    if !identity.is_there() {
        return Err(format!("process {} has ended", identity.pid));
    }
    ends::find(identity.pid, &mut dump);
    let names = symbols.names(&dump);
    dump.merge_alike(&names);
    let threads = dump.threads.iter();
    let now = Mounts {
        by_id: threads.clone().map(|it| (it.id, it.mounts)).collect(),
        taken: Instant::now(),
    };
    Ok(Snapshot {
        keys: keys(&dump, &names),
        places: threads.zip(0..).map(|(it, place)| (it.id, place)).collect(),
        before: before.replace(now),
        dump,
        names,
        want,
        taken: Instant::now(),
        took,
        number: 0,
        problems: symbols.problems().to_vec(),
    })
}

impl Snapshot {
    /// Returns the snapshot of a dump that is at hand, for tests of what shows one. The frames have
    /// no names. `before` has ids and mounts of threads 2 seconds earlier.
    pub fn of(dump: Dump, want: Want, number: u64, before: &[(u64, u64)]) -> Snapshot {
        let (names, taken) = (Names::plain(&dump), Instant::now());
        let places = dump
            .threads
            .iter()
            .zip(0..)
            .map(|(it, place)| (it.id, place));
        let by_id: HashMap<u64, u64> = before.iter().copied().collect();
        Snapshot {
            keys: keys(&dump, &names),
            places: places.collect(),
            before: (!by_id.is_empty()).then(|| Mounts {
                by_id,
                taken: taken - Duration::from_secs(2),
            }),
            dump,
            names,
            want,
            taken,
            took: Duration::from_millis(30),
            number,
            problems: Vec::new(),
        }
    }
}

impl Want {
    /// Returns the words of the protocol: which threads, and how many at most.
    fn words(self) -> (&'static str, Option<u64>) {
        match self {
            Want::Examples => ("examples", None),
            Want::All { max } => ("all", Some(max)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(id: u64, mounts: u64) -> Thread {
        Thread {
            id,
            mounts,
            ..Thread::default()
        }
    }

    #[test]
    fn mounts_are_compared_with_the_dump_before() {
        let dump = Dump {
            threads: vec![thread(7, 110), thread(8, 5), thread(9, 3)],
            ..Dump::default()
        };
        let before = [(7, 100), (8, u64::from(u32::MAX))];
        let snapshot = Snapshot::of(dump, Want::All { max: 10 }, 2, &before);
        let rate = |id| snapshot.mounts_per_second(snapshot.thread(id).unwrap());
        assert_eq!(rate(7), Some(5.0));
        assert_eq!(rate(8), Some(3.0), "the process counts with 32 bits");
        assert_eq!(rate(9), None, "it is new");
        assert!(snapshot.thread(10).is_none());
    }

    #[test]
    fn a_cut_dump_will_not_do_for_more_threads() {
        let mut dump = Dump::default();
        let has =
            |dump: &Dump, want| Snapshot::of(dump.clone(), Want::All { max: 10 }, 1, &[]).has(want);
        assert!(has(&dump, Want::All { max: 5 }));
        assert!(has(&dump, Want::All { max: 50 }), "there are no more");
        assert!(!has(&dump, Want::Examples));
        dump.totals.cut = 1;
        assert!(!has(&dump, Want::All { max: 50 }));
    }
}
