//! One run: the test is the first virtual thread, and all threads that it makes are virtual.

use crate::claims::{self, Claim};
use crate::schedule::Switch;
use crate::stacks::{Names, Stack};
use crate::strategy::{Census, Strategy};
use crate::world::{self, Options, Outcome, Seen, Step, Thread, World};
use crate::{clock, crash, disk, kernel, net, points, timers};
use core::fmt;
use core::time::Duration;
use pirn_rt::lock::Lock;
use pirn_rt::no_suspend::NoSuspend;
use pirn_rt::sched::{self, simulation};
use pirn_rt::vthread;
use serde::{Deserialize, Serialize};
use std::io;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

/// What a run has shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// How threads were chosen.
    pub strategy: Strategy,
    /// How it ended.
    pub outcome: Outcome,
    /// Two runs that did the same, step by step, have the same.
    pub hash: u64,
    /// The number of points at which another thread could be chosen.
    pub points: u64,
    /// How many of them were in instrumented code: atomic operations, loads, stores and edges.
    pub instrumented: u64,
    /// How much virtual time has passed.
    pub time: Duration,
    /// The choices that were not the plain ones.
    pub switches: Vec<Switch>,
    /// The order in which threads ran, as a number: two runs with the same schedule have the same,
    /// whatever the times.
    pub order: u64,
    /// Where the thread was that was left, for each switch, if that was recorded.
    pub places: Vec<String>,
    /// Each step, if that was recorded.
    pub trace: Vec<Step>,
    /// The calls that the simulation has refused: they would reach the machine.
    pub refused: Vec<String>,
    /// What the network and the simulator have done to the program, if the steps were recorded:
    /// when, in nanoseconds, and what.
    pub faults: Vec<(u64, String)>,
    /// The threads, by number.
    pub threads: Vec<Thread>,
    /// The panics of all threads, also those that were caught.
    pub panics: Vec<Panic>,
    /// What the program has claimed of itself.
    pub claims: Vec<Claim>,
}

impl Report {
    /// Returns the threads and how many points each had: for strategies of other runs.
    pub fn census(&self) -> Census {
        self.threads
            .iter()
            .map(|it| (it.maker, it.points))
            .collect()
    }
}

/// A panic of a thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Panic {
    /// Where it was raised: file, line and column.
    pub place: String,
    /// Its message.
    pub message: String,
    /// The runtime's own number of the thread.
    id: u64,
    /// Another thread has joined the thread, and so learnt of it.
    joined: bool,
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// A test, which runs many times.
pub(crate) type Test = Arc<dyn Fn() + Send + Sync>;

/// One run at a time in a process.
static ONE: Mutex<()> = Mutex::new(());
/// The panics of the run.
static PANICS: Lock<Vec<Panic>> = Lock::new(Vec::new());

/// Runs a test once.
///
/// # Errors
/// The process has virtual threads already that are not simulated, or can have none.
///
/// # Panics
/// If the caller is one of the simulation's threads.
pub(crate) fn run(options: &Options, test: &Test) -> io::Result<Report> {
    assert!(!is_inside(), "pirn: a simulation within a simulation");
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    prepare()?;
    crash::install();
    crash::note(Some(options.seed));
    PANICS.lock().clear();
    claims::take();
    world::begin(options.clone());
    simulation::set_running(true);
    let message = Arc::new(OnceLock::new());
    let (test, place) = (Arc::clone(test), Arc::clone(&message));
    // One of `std`'s threads: the harness captures what it prints, and its panics have its name.
    pirn_posix::make_next_virtual();
    let root = std::thread::Builder::new()
        .name("main".to_owned())
        .stack_size(ROOT_STACK)
        .spawn(move || {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| test())) {
                let _ = place.set(text(&*payload).to_owned());
            }
            drop((test, place));
            world::returned();
        });
    let (outcome, seen) = match root {
        Ok(_) => world::end(),
        Err(error) => {
            simulation::set_running(false);
            return Err(error);
        }
    };
    simulation::set_running(false);
    crash::note(None);
    timers::end();
    disk::end();
    let Seen {
        hash,
        order,
        points,
        instrumented,
        switches,
        stacks,
        trace,
        refused,
        threads,
        faults,
        steps: _,
    } = seen;
    let mut names = options.stacks.then(Names::new);
    let mut describe = |stack: &Stack| match &mut names {
        Some(names) => names.describe(stack),
        None => String::new(),
    };
    let places = stacks.iter().map(&mut describe).collect();
    let trace = trace.into_iter().map(|(step, stack)| Step {
        place: describe(&stack),
        ..step
    });
    let trace = trace.collect();
    let threads = threads.into_iter().map(|(thread, stack)| Thread {
        place: describe(&stack),
        ..thread
    });
    let threads = threads.collect();
    let panics = core::mem::take(&mut *PANICS.lock());
    let unseen = panics.iter().find(|panic| !panic.joined);
    let outcome = match (message.get(), outcome, unseen) {
        (Some(message), _, _) => Outcome::Panicked(message.clone()),
        (None, Outcome::Passed, Some(panic)) if !options.panics_allowed => {
            Outcome::Panicked(format!("a thread that no thread joins: {}", panic.message))
        }
        (None, outcome, _) => outcome,
    };
    Ok(Report {
        seed: options.seed,
        strategy: options.strategy.clone(),
        outcome,
        hash,
        order,
        points,
        instrumented,
        time: Duration::from_nanos(clock::passed()),
        switches,
        places,
        trace,
        faults,
        threads,
        refused,
        panics,
        claims: claims::take(),
    })
}

/// Bytes of the test's stack: as the test harness gives its threads.
const ROOT_STACK: usize = 2 << 20;

/// Starts the runtime with the simulator.
pub(crate) fn prepare() -> io::Result<()> {
    static ONCE: Once = Once::new();
    /// Of those that virtual threads make.
    const INSIDE: core::ffi::c_int = 2;
    pirn::__private::simulate(&World)?;
    ONCE.call_once(|| {
        points::keep();
        pirn_libc::simulated::install(&net::Calls, &kernel::Calls);
        pirn_posix::pirn_make_pthreads_virtual(INSIDE);
        clock::install();
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| match is_inside() {
            true => note_panic(info),
            false => before(info),
        }));
    });
    Ok(())
}

/// Returns whether the calling thread is one of the simulation's, or its carrier.
pub(crate) fn is_inside() -> bool {
    sched::carrier(&NoSuspend::new()).is_some()
}

fn note_panic(info: &PanicHookInfo<'_>) {
    let panic = Panic {
        place: info.location().map(ToString::to_string).unwrap_or_default(),
        message: text(info.payload()).to_owned(),
        id: vthread::current().map_or(0, |own| own.id()),
        joined: false,
    };
    PANICS.lock().push(panic);
}

/// Notes that a thread has been joined, by the runtime's own number.
pub(crate) fn note_join(id: u64) {
    let mut panics = PANICS.lock();
    for panic in panics.iter_mut().filter(|panic| panic.id == id) {
        panic.joined = true;
    }
}

/// Returns a panic's message.
fn text(payload: &(dyn core::any::Any + Send)) -> &str {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    let fixed = payload.downcast_ref::<&str>().copied();
    owned.or(fixed).unwrap_or("(a panic without a message)")
}
