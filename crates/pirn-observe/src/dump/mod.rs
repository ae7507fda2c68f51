//! A dump of all virtual threads.
//!
//! ```text
//!   residents, slot by slot          walk: claim, unwind         assembly: count, examples
//!   +------+------+------+           +---------------+           +-----------+
//!   | core | null | core | ... ----> | frames, state | --------> | 999,997 x | ---> Dump
//!   +------+------+------+           +---------------+           +-----------+
//! ```
//!
//! Nobody is stopped: a dump is made of one truth per thread, each of its own moment. A thread that
//! is parked is [claimed](walk) while it is looked at. Others are looked at again at the end. Who
//! reads the dump gets it when nobody is claimed any more.
//!
//! * [`walk`]: looking at one thread; [`running`]: at one that cannot be claimed. [`unwind`]: its
//!   stack; [`modules`]: the unwind information; [`works_for`]: what it works for; [`ahead`]:
//!   fetching what is needed soon.
//! * [`assembly`]: putting the dump together; [`stacks`]: the different stacks; [`since`]: since
//!   when threads wait; [`process`]: what is not about threads. For what they wait:
//!   [`waits`](super::waits).
//! * [`caught`]: the stack of one thread that runs.

mod ahead;
mod api;

mod assembly;
pub mod caught;
mod modules;
pub mod process;
mod running;
mod since;
mod stacks;
mod unwind;
mod walk;
mod works_for;

pub use api::{Options, ThreadDump};

use crate::findings::{self, Recent};
use crate::metrics;
use crate::waits::scopes;
use ahead::Ahead;
use assembly::Assembly;
use pirn_dump::{Dump, Finding, Totals};
use pirn_rt::poison::locked;
use pirn_rt::runtime;
use pirn_rt::stack::Slot;
use pirn_rt::stack::region;
use pirn_rt::sys;
use since::Sights;
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
    static SIGHTS: Mutex<Sights> = Mutex::new(Sights::new());
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
    let mut ahead = Ahead::new();
    region::for_each_open(|slot| {
        if let Some(due) = ahead.push(Some(slot)) {
            walk(due);
        }
    });
    ahead.rest().for_each(walk);
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
