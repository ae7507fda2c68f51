//! One run: the test is the first virtual thread, and all threads that it makes are virtual.

use crate::net::Sockets;
use crate::schedule::Switch;
use crate::strategy::Strategy;
use crate::world::{self, Options, Outcome, Seen, Step, World};
use crate::{clock, entropy, points};
use core::time::Duration;
use pirn_rt::no_suspend::NoSuspend;
use pirn_rt::sched::{self, simulation};
use std::io;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

/// What a run has shown.
#[derive(Clone, Debug)]
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
    /// How much virtual time has passed.
    pub time: Duration,
    /// The choices that were not the plain ones.
    pub switches: Vec<Switch>,
    /// Each step, if the options ask for it.
    pub trace: Vec<Step>,
    /// The panics of all threads, also those that were caught: message and place.
    pub panics: Vec<String>,
}

/// A test, which runs many times.
pub(crate) type Test = Arc<dyn Fn() + Send + Sync>;

/// One run at a time in a process.
static ONE: Mutex<()> = Mutex::new(());
/// The panics of the run.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

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
    PANICS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
    world::begin(options.clone());
    simulation::set_running(true);
    let message = Arc::new(OnceLock::new());
    let (test, place) = (Arc::clone(test), Arc::clone(&message));
    let root = pirn::thread::Builder::new()
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
    let Seen {
        hash,
        points,
        switches,
        trace,
    } = seen;
    let panics = core::mem::take(&mut *PANICS.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Report {
        seed: options.seed,
        strategy: options.strategy.clone(),
        outcome: match message.get() {
            Some(message) => Outcome::Panicked(message.clone()),
            None => outcome,
        },
        hash,
        points,
        time: Duration::from_nanos(clock::now() - clock::START),
        switches,
        trace,
        panics,
    })
}

/// Bytes of the test's stack: as the test harness gives its threads.
const ROOT_STACK: usize = 2 << 20;

/// Starts the runtime with the simulator.
pub(crate) fn prepare() -> io::Result<()> {
    static ONCE: Once = Once::new();
    unsafe extern "C" {
        safe fn pirn_make_pthreads_virtual(which: core::ffi::c_int);
    }
    /// Of those that virtual threads make.
    const INSIDE: core::ffi::c_int = 2;
    pirn::__private::simulate(&World)?;
    ONCE.call_once(|| {
        points::keep();
        pirn_libc::simulated::install(&Sockets);
        pirn_libc::simulated::install_random(entropy::fill);
        pirn_make_pthreads_virtual(INSIDE);
        clock::install();
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| match is_inside() {
            true => note_panic(info),
            false => before(info),
        }));
    });
    Ok(())
}

/// Returns whether the calling thread is one of the simulation's.
pub(crate) fn is_inside() -> bool {
    sched::carrier(&NoSuspend::new()).is_some()
}

fn note_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let text = format!("{place}: {}", text(info.payload()));
    PANICS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(text);
}

/// Returns a panic's message.
fn text(payload: &(dyn core::any::Any + Send)) -> &str {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    let fixed = payload.downcast_ref::<&str>().copied();
    owned.or(fixed).unwrap_or("(a panic without a message)")
}
