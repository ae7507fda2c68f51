//! A dump of all virtual threads.
//!
//! ```text
//!   residents, slot by slot          walk: claim, unwind         assembly: count, keep examples
//!   +------+------+------+           +---------------+           +-----------+
//!   | core | null | core | ... ----> | frames, state | --------> | 999,997 x | ---> Dump
//!   +------+------+------+           +---------------+           +-----------+
//! ```
//!
//! Nobody is stopped: a dump is made of one truth per thread, each of its own moment. A thread that
//! is parked is [claimed](walk) while it is looked at. Others are looked at again at the end. Who
//! reads the dump gets it when nobody is claimed any more.
//!
//! * [`walk`]: looking at one thread. [`unwind`]: its stack; [`modules`]: the unwind information.
//!   residents, slot by slot          walk: claim, unwind         assembly: count, examples
//!   threads wait; [`waits`]: for what.

pub mod api;
mod assembly;
mod modules;
mod since;
mod stacks;
mod unwind;
mod waits;
mod walk;

use crate::runtime::{self, Runtime};
use crate::stack::Slot;
use crate::stack::region;
use crate::sys;
use assembly::Assembly;
use pirn_dump::{Dump, Process};
use since::Sights;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use walk::Walker;

/// Returns what all virtual threads of this process are doing, grouped by their stacks.
///
/// Nobody is stopped: each thread is seen at its own moment. It takes about two microseconds per
/// thread.
///
/// # Examples
/// ```
/// use pirn::thread;
///
/// let waits = thread::spawn(thread::park);
/// let dump = pirn::dump();
/// assert_eq!(dump.threads(), 1);
/// println!("{dump}");
/// waits.thread().unpark();
/// waits.join().unwrap();
/// ```
pub fn dump() -> api::ThreadDump {
    api::Options::new().take()
}

/// What is to be in a dump.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// List at most this many threads; otherwise only examples.
    pub(crate) threads: Option<usize>,
}

/// A thread that cannot be claimed is looked at this often.
const LOOKS: u32 = 3;
/// The pause between two looks, in nanoseconds.
const PAUSE_NS: u64 = 500_000;

/// Makes a dump. Blocks the calling platform thread; one dump is made at a time.
pub(crate) fn take(options: &Contents) -> Dump {
    static SIGHTS: Mutex<Sights> = Mutex::new(Sights::new());
    let mut sights = SIGHTS.lock().unwrap_or_else(PoisonError::into_inner);
    let begin = now();
    let mut assembly = Assembly::new(&mut sights, options.threads, begin);
    let mut walker = Walker::new();
    walk_all(&mut walker, &mut assembly);
    let runtime = runtime::get();
    Dump {
        process: process(runtime, begin),
        totals: assembly.totals,
        modules: modules(&walker.unwinder.modules),
        places: assembly.places.all,
        stacks: assembly.stacks.all,
        groups: assembly.grouper.finish(),
        threads: assembly.threads,
        ..Dump::default()
    }
}

fn walk_all(walker: &mut Walker, assembly: &mut Assembly<'_>) {
    let mut busy: Vec<Slot> = Vec::new();
    region::for_each_open(|slot| {
        if let Some(seen) = walker.look(slot) {
            match seen.stack_bytes {
                Some(_) => assembly.add(seen, walker),
                None => busy.push(slot),
            }
        }
    });
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

/// Returns the time in nanoseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_nanos() as u64
}

fn process(runtime: Option<&Runtime>, begin: u64) -> Process {
    Process {
        pid: std::process::id(),
        started: 0,
        program: program(),
        version: format!("pirn {}", env!("CARGO_PKG_VERSION")),
        begin,
        end: now(),
        parallelism: runtime.map_or(0, |runtime| runtime.settings.parallelism as u32),
    }
}

fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.to_string_lossy().into_owned()
}

fn modules(modules: &modules::Modules) -> Vec<pirn_dump::Module> {
    let program = program();
    let modules = modules.all.iter().map(|module| pirn_dump::Module {
        path: match module.path.is_empty() {
            true => program.as_bytes().to_vec(),
            false => module.path.clone(),
        },
        build_id: module.build_id.clone(),
        bias: module.bias as u64,
        start: module.code.start as u64,
        end: module.code.end as u64,
        offset: module.offset,
    });
    modules.collect()
}
