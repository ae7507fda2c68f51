//! Dumps of all virtual threads.
//!
//! ```text
//!   thread table, slot by slot       walk: claim, unwind         assembly: count, examples
//!   +------+------+------+           +---------------+           +-----------+
//!   | core | null | core | ... ----> | frames, state | --------> | 999,997 x | ---> Dump
//!   +------+------+------+           +---------------+           +-----------+
//! ```
//!
//! The dump sees each thread at a moment of its own. It [claims](walk) a parked thread while it
//! reads its stack, and looks at the other threads again at the end. The reader of the dump gets it
//! when no thread is claimed any more.
//!
//! * [`walk`]: looking at one thread. [`unwind`]: its stack, and the unwind information.
//! * [`assembly`]: counting threads that are alike, and the different stacks. What threads wait
//!   for: [`waits`](super::waits).

mod assembly;
mod unwind;
mod walk;

#[doc(hidden)]
pub use walk::ANNOTATION_WORDS;

use crate::findings;
use crate::hooks::hooks;
use crate::metrics::{self, MEMORY, Sample};
use assembly::{Assembly, FirstSeen, Stacks};
use core::fmt;
use pirn_dump::{
    Carrier, CarrierState, Dump, Format, Memory, Module, Process, Scope, Symbols, Thread, Totals,
    View, Wait,
};
use pirn_rt::poison::{PerProcess, locked};
use pirn_rt::sched::carrier::{self, Carrying};
use pirn_rt::sched::runtime::{self, Runtime};
use pirn_rt::stack::{Slot, region};
use pirn_rt::sys;
use pirn_rt::vthread;
use pirn_rt::vthread::helper::ForcePlatform;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};
use unwind::Modules;
use walk::{Prefetch, Walker};

/// Returns what all virtual threads of this process are doing, grouped by their stacks.
///
/// No thread is stopped: each is seen at its own moment. It takes about two microseconds per
/// thread.
pub fn take() -> ThreadDump {
    Options::new().take()
}

/// A thread that cannot be claimed is looked at this often.
const LOOKS: u32 = 3;
/// The pause between two looks, in nanoseconds.
const PAUSE_NS: u64 = 500_000;

/// Since when threads wait. Locked while a dump is made.
static SIGHTS: PerProcess<Mutex<FirstSeen>> = PerProcess::new();

/// Forgets what dumps of the parent have seen: one may have been in the making.
pub(crate) fn after_fork() {
    SIGHTS.after_fork();
}

/// Makes a dump. Blocks the calling platform thread; one dump is made at a time.
pub(crate) fn make(options: &Options) -> Dump {
    if runtime::has_forked() {
        return Dump::default(); // Its threads are in the parent.
    }
    let mut sights = locked(SIGHTS.get());
    let begin = now();
    let mut assembly = Assembly::new(&mut sights, options.threads, begin);
    let mut walker = Walker::new();
    walk_all(&mut walker, &mut assembly);
    let collect = |runtime| metrics::collect(runtime, || metrics::memory(runtime));
    let numbers = runtime::get().map_or_else(Sample::default, collect);
    let [new, ..] = numbers.threads;
    let found = assembly.findings(new > 0);
    let scopes = complete_scopes(scopes(), &assembly.threads);
    Dump {
        process: process(begin),
        carriers: carriers(&assembly.mounted),
        scopes,
        totals: Totals {
            started: numbers.started,
            ended: numbers.ended,
            unlisted_new: new,
            ..assembly.totals
        },
        modules: modules(&walker.unwinder.modules),
        places: assembly.places.all,
        stacks: assembly.stacks.all,
        groups: assembly.grouper.finish(),
        threads: assembly.threads,
        memory: memory(&numbers),
        findings: found.into_iter().chain(findings::recent()).collect(),
    }
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

/// The options of a dump.
#[derive(Clone, Debug, Default)]
#[must_use = "`take` makes the dump"]
pub struct Options {
    /// List at most this many threads; otherwise only examples.
    pub(crate) threads: Option<usize>,
}

impl Options {
    /// Returns the options of [`take`]: groups, with three examples of each.
    pub fn new() -> Options {
        Options::default()
    }

    /// Lists each thread, up to this number. A listed thread takes some 200 bytes.
    pub fn list(mut self, most: usize) -> Options {
        self.threads = Some(most);
        self
    }

    /// Makes the dump. On a virtual thread this is done by a platform thread, while the virtual one
    /// parks.
    ///
    /// # Panics
    /// If that platform thread cannot be started.
    pub fn take(&self) -> ThreadDump {
        on_platform_thread(|| ThreadDump(make(self)))
    }
}

/// Calls `f` on a platform thread, while a virtual thread that calls this parks.
fn on_platform_thread<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    if vthread::current().is_none() {
        return f();
    }
    let forced = ForcePlatform::helpers();
    let result = std::thread::scope(|scope| scope.spawn(f).join());
    drop(forced);
    result.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

/// What all virtual threads were doing. Its text names the functions, if the program's file is
/// still there.
pub struct ThreadDump(pirn_dump::Dump);

impl ThreadDump {
    /// Returns how many threads were seen.
    pub fn threads(&self) -> u64 {
        self.0.totals.listed
    }

    /// Writes the dump in the form that `pirn dump` reads.
    ///
    /// # Errors
    /// The writer fails.
    pub fn write_to(&self, out: impl Write) -> io::Result<()> {
        self.0.write_to(out)
    }
}

impl fmt::Display for ThreadDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        let names = Symbols::of_self().names(&self.0);
        // Writing to memory does not fail.
        let _ = Format::Text.write(&self.0, &names, &View::default(), &mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

impl fmt::Debug for ThreadDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.threads();
        f.debug_struct("ThreadDump")
            .field("threads", &threads)
            .finish_non_exhaustive()
    }
}

/// Returns the time in nanoseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_nanos() as u64
}

/// Describes the process, for a dump that was begun at this time and ends now.
fn process(begin: u64) -> Process {
    let parallelism = runtime::get().map_or(0, |runtime| runtime.settings.parallelism);
    Process {
        pid: std::process::id(),
        started: own_start().unwrap_or(0),
        program: program(),
        version: concat!("pirn ", env!("CARGO_PKG_VERSION")).into(),
        begin,
        end: now(),
        parallelism: parallelism as u32,
    }
}

fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.to_string_lossy().into_owned()
}

/// Lists the modules.
fn modules(modules: &Modules) -> Vec<Module> {
    let program = program();
    let modules = modules.all.iter().map(|module| Module {
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

/// Says what memory is used for.
fn memory(sample: &Sample) -> Vec<Memory> {
    let uses = MEMORY.iter().zip(sample.memory);
    let memory = uses.map(|(name, bytes)| Memory {
        name: name.replace('_', "-"),
        bytes,
    });
    memory.collect()
}

/// Lists the carriers, with the threads that were seen `mounted` on them, and the platform threads
/// of the program that carry a thread just now.
fn carriers(mounted: &HashMap<u32, u64>) -> Vec<Carrier> {
    let Some(runtime) = runtime::get() else {
        return Vec::new();
    };
    let regular = |number: u32| runtime.processors.used().get(number as usize);
    let carriers = carrier::carriers().filter(|it| it.busy || regular(it.number).is_some());
    let mut carriers: Vec<Carrier> = carriers
        .map(|carrying| Carrier {
            number: carrying.number,
            tid: carrying.platform,
            state: state(runtime, carrying),
            thread: mounted.get(&carrying.number).copied(),
            spare: regular(carrying.number).is_some_and(|it| it.spare.is_some()),
        })
        .collect();
    carriers.sort_by_key(|carrier| carrier.number);
    carriers
}

/// Returns the state of a carrier, by its processor. A carrier without one runs a thread or sleeps.
fn state(runtime: &Runtime, carrying: Carrying) -> CarrierState {
    let mut used = runtime.processors.used().iter();
    let held = used.find(|processor| metrics::holder(processor) == Some(carrying.platform));
    match held {
        Some(processor) => metrics::state(processor),
        None if carrying.busy => CarrierState::Running,
        None => CarrierState::Sleeping,
    }
}

/// Lists the open scopes, in the order in which they were opened.
fn scopes() -> Vec<Scope> {
    let mut scopes = (hooks().scopes)();
    scopes.sort_by_key(|scope| scope.id);
    scopes
}

/// Returns when this process began, in ticks.
pub(crate) fn own_start() -> Option<u64> {
    start_time("/proc/self/stat")
}

/// Returns when a process began, in ticks, by its `stat` file.
pub(crate) fn start_time(path: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    start_in(&text)
}

fn start_in(stat: &str) -> Option<u64> {
    let (_, after_the_name) = stat.rsplit_once(')')?;
    after_the_name.split_whitespace().nth(19)?.parse().ok()
}

/// Adds the scopes of `pirn::thread::scope` to the open `scopes`: they are
/// found by the listed `threads` that belong to them.
fn complete_scopes(mut scopes: Vec<Scope>, threads: &[Thread]) -> Vec<Scope> {
    let known: HashSet<u64> = scopes.iter().map(|scope| scope.id).collect();
    let mut others: HashMap<u64, Scope> = HashMap::new();
    for thread in threads {
        if let Some(id) = thread.scope.filter(|id| !known.contains(id)) {
            let scope = others.entry(id).or_default();
            scope.id = id;
            scope.members += 1;
        }
    }
    for thread in threads {
        if let Wait::Scope { id } = thread.wait
            && let Some(scope) = others.get_mut(&id)
        {
            scope.owner = Some(thread.id);
            scope.parent = thread.scope;
        }
    }
    scopes.extend(others.into_values());
    scopes.sort_unstable_by_key(|scope| scope.id);
    scopes
}

/// The stack of one thread at one moment. Its text has one function per line, innermost first.
pub struct ThreadStack(
    /// A dump with this stack and nothing else.
    Dump,
);

impl ThreadStack {
    /// Returns the stack that the walker has just read.
    fn of(walker: &mut Walker, exact: bool) -> ThreadStack {
        let mut stacks = Stacks::new();
        stacks.number(&mut walker.frames, exact, &walker.unwinder, true);
        ThreadStack(Dump {
            modules: modules(&walker.unwinder.modules),
            stacks: stacks.all,
            ..Dump::default()
        })
    }

    /// Returns the functions on the stack, innermost first, without the runtime's own. They have
    /// names if the program's files are there, and are addresses in modules otherwise.
    pub fn frames(&self) -> Vec<String> {
        let names = Symbols::of_self().names(&self.0);
        let stack = self.0.stacks.first();
        let frames = stack.map(|stack| names.shown(stack)).unwrap_or_default();
        frames.iter().map(ToString::to_string).collect()
    }
}

impl fmt::Display for ThreadStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.frames()
            .iter()
            .try_for_each(|frame| writeln!(f, "{frame}"))
    }
}

impl fmt::Debug for ThreadStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadStack").finish_non_exhaustive()
    }
}

/// Returns the stack of the virtual thread with this id and slot, if it can be read.
#[doc(hidden)]
pub fn stack_of_thread(slot: Slot, id: u64) -> Option<ThreadStack> {
    on_platform_thread(|| {
        let mut walker = Walker::new();
        (0..LOOKS).find_map(|look| {
            if look > 0 {
                sys::nap(PAUSE_NS);
            }
            let seen = walker.look(slot).filter(|seen| seen.id == id)?;
            seen.stack_bytes?;
            Some(ThreadStack::of(&mut walker, seen.exact))
        })
    })
}

/// Returns the stack of the virtual thread that is mounted on this platform thread, which is not
/// the calling one, if it can be read. Takes some milliseconds, and stops the thread for some
/// microseconds. If that fails, `again` says whether it is tried once more.
pub(crate) fn stack_on(platform: u32, again: impl Fn() -> bool) -> Option<ThreadStack> {
    let mut walker = Walker::new();
    while walker.stop(platform).and_then(|it| it.id).is_none() {
        if !again() {
            return None;
        }
    }
    Some(ThreadStack::of(&mut walker, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_behind_any_name() {
        let rest = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 1 1";
        assert_eq!(start_in(rest), Some(98765));
        assert_eq!(start_in("7 (a) S 1"), None);
        let pid = std::process::id();
        assert_eq!(start_time(&format!("/proc/{pid}/stat")), own_start());
    }

    #[test]
    fn the_child_of_a_fork_makes_dumps_though_its_parent_was_making_one() {
        let sights = locked(SIGHTS.get());
        // SAFETY: the child uses what glibc keeps usable after a fork.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            pirn_testing::end_if_it_hangs();
            after_fork();
            let dump = make(&Options::default());
            // SAFETY: ends the child without the exit handlers.
            unsafe { libc::_exit(i32::from(dump.process.pid != std::process::id())) };
        }
        drop(sights);
        let mut status = -1;
        // SAFETY: the child from above.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert_eq!(status, 0, "status of the child");
    }
}
