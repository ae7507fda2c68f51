//! A dump of all virtual threads.
//!
//! ```text
//!   residents, slot by slot          walk: claim, unwind         assembly: count, examples
//!   +------+------+------+           +---------------+           +-----------+
//!   | core | null | core | ... ----> | frames, state | --------> | 999,997 x | ---> Dump
//!   +------+------+------+           +---------------+           +-----------+
//! ```
//!
//! The dump sees each thread at a moment of its own. It [claims](walk) a parked thread while it
//! reads its stack, and looks at the other threads again at the end. The reader of the dump gets it
//! when no thread is claimed any more.
//!
//! * [`walk`]: looking at one thread; [`running`]: at one that cannot be claimed. [`unwind`]: its
//!   stack; [`modules`]: the unwind information; [`works_for`]: what it works for; [`prefetch`]:
//!   fetching what is needed soon.
//! * [`assembly`]: putting the dump together; [`stacks`]: the different stacks; [`first_seen`]:
//!   since when threads wait; [`process`]: what is not about threads. For what they wait:
//!   [`waits`](super::waits).
//! * [`stop_for_read`]: the stack of one thread that runs.

mod api;
mod prefetch;

mod assembly;
mod first_seen;
mod modules;
pub mod process;
mod running;
mod stacks;
pub mod stop_for_read;
mod unwind;
mod walk;
mod works_for;

pub use api::{Options, ThreadDump};

use crate::findings::{self, Recent};
use crate::metrics;
use crate::waits::scopes;
use assembly::Assembly;
use first_seen::FirstSeen;
use pirn_dump::{Dump, Finding, Totals};
use pirn_rt::poison::locked;
use pirn_rt::runtime;
use pirn_rt::stack::Slot;
use pirn_rt::stack::region;
use pirn_rt::sys;
use prefetch::Prefetch;
use std::sync::{Arc, Mutex};
use walk::Walker;
pub use works_for::ANNOTATION_WORDS;

/// Returns what all virtual threads of this process are doing, grouped by their stacks.
///
/// Nobody is stopped: each thread is seen at its own moment. It takes about two microseconds per
/// thread.
pub fn dump() -> api::ThreadDump {
    api::Options::new().take()
}

/// What is to be in a dump.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// List at most this many threads; otherwise only examples.
    pub threads: Option<usize>,
}

/// A thread that cannot be claimed is looked at this often.
const LOOKS: u32 = 3;
/// The pause between two looks, in nanoseconds.
const PAUSE_NS: u64 = 500_000;

/// Makes a dump. Blocks the calling platform thread; one dump is made at a time.
pub fn take(options: &Contents) -> Dump {
    static SIGHTS: Mutex<FirstSeen> = Mutex::new(FirstSeen::new());
    if runtime::has_forked() {
        return Dump::default(); // Its threads are in the parent.
    }
    let mut sights = locked(&SIGHTS);
    let begin = process::now();
    let mut assembly = Assembly::new(&mut sights, options.threads, begin);
    let mut walker = Walker::new();
    walk_all(&mut walker, &mut assembly);
    let metrics = metrics::metrics();
    let findings = assembly.findings(metrics.threads.new > 0);
    let scopes = scopes::complete(process::scopes(), &assembly.threads);
    Dump {
        process: process::process(begin),
        carriers: process::carriers(&assembly.mounted),
        scopes,
        totals: Totals {
            started: metrics.started,
            ended: metrics.ended,
            unlisted_new: metrics.threads.new,
            ..assembly.totals
        },
        modules: process::modules(&walker.unwinder.modules),
        places: assembly.places.all,
        stacks: assembly.stacks.all,
        groups: assembly.grouper.finish(),
        threads: assembly.threads,
        memory: process::memory(&metrics),
        findings: findings.into_iter().chain(diagnosed()).collect(),
    }
}

/// Returns the last diagnostics.
fn diagnosed() -> Vec<Finding> {
    let finding = |recent: &Arc<Recent>| Finding {
        kind: recent.kind.into(),
        text: recent.text.lines().next().unwrap_or_default().to_owned(),
        threads: recent.threads.clone(),
    };
    findings::recent().iter().map(finding).collect()
}

fn walk_all(walker: &mut Walker, assembly: &mut Assembly<'_>) {
    let mut busy: Vec<Slot> = Vec::new();
    let mut walk = |slot| {
        if let Some(seen) = walker.look(slot) {
            match seen.stack_bytes {
                Some(_) => assembly.add(seen, walker),
                None => busy.push(slot),
            }
        }
    };
    let mut prefetch = Prefetch::new();
    region::for_each_open(|slot| {
        if let Some(due) = prefetch.push(Some(slot)) {
            walk(due);
        }
    });
    prefetch.rest().for_each(walk);
    for look in 1..LOOKS {
        if busy.is_empty() {
            break;
        }
        sys::nap(PAUSE_NS);
        let last = look + 1 == LOOKS;
        busy.retain(|&slot| match walker.look(slot) {
            Some(seen) if last || seen.stack_bytes.is_some() => {
                assembly.add(seen, walker);
                false
            }
            Some(_) => true,
            None => false,
        });
    }
}
