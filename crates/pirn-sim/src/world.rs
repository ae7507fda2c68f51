//! The state of the run, and the [`Simulator`] that decides by it.
//!
//! ```text
//!                   runnable()                       next()
//!   made, woken ----------------> runnable ------------------------> running
//!                                  ^    ^                            |  |  |
//!                    advance(): due|    +---- is_followed(): chosen -+  |  |
//!                                paused <----- is_followed(): pause ----+  |
//!                                                       waits, or ends  <--+
//! ```
//!
//! A run ends when the test has returned, no other thread can run at once, and none pauses; or
//! fails: all threads wait (a deadlock), or there were too many points. Threads that are left are
//! never chosen again. Their stacks stay. Their timers are let run out, and wake no thread.

use crate::random::{self, Purpose, Streams};
use crate::schedule::{self, Switch};
use crate::stacks::{self, Stack};
use crate::strategy::{Candidate, Chooser, Strategy};
use crate::{clock, net, program, run, timers};
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use pirn_rt::lock::Lock;
use pirn_rt::sched::Cause;
use pirn_rt::sched::simulation::{Fault, Point, Simulator};
use pirn_rt::sys::{self, Errno};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::{self, Core, Ready, ThreadRef};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, Write as _};
use std::sync::Arc;

/// What a run is to be like.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// From which all random numbers come.
    pub(crate) seed: u64,
    /// How threads are chosen.
    pub(crate) strategy: Strategy,
    /// Of the instrumented loads, stores and edges, one in this many is a point on average; 0:
    /// none.
    pub(crate) places: u32,
    /// One point in this many is a pause of its thread; 0: none.
    pub(crate) pauses: u64,
    /// The longest pause, in nanoseconds.
    pub(crate) longest_pause: u64,
    /// One futex wait in this many returns without a wake; 0: none.
    pub(crate) spurious_wakes: u64,
    /// One new thread in this many cannot be made; 0: none.
    pub(crate) failing_spawns: u64,
    /// A run with more points fails: threads seem to wait for each other by spinning.
    pub(crate) most_points: u64,
    /// Whether the report has each step.
    pub(crate) trace: bool,
    /// Whether the report has the stacks of threads at switches and, with `trace`, at each step.
    pub(crate) stacks: bool,
    /// The process stops itself before this step (`SIGSTOP`), for a debugger; 0: never.
    pub(crate) stop: u64,
    /// Whether a run passes in which a thread panics that no other joins.
    pub(crate) panics_allowed: bool,
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// The test has returned.
    Passed,
    /// The test has panicked, or another thread that no thread has joined: with this message.
    Panicked(String),
    /// All threads wait, for each other or for nothing that is to come.
    Deadlock,
    /// The run had [`Sim::most_points`](crate::Sim::most_points) points.
    TooLong,
}

/// A step of a run: a thread goes on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The virtual time since the beginning, in nanoseconds.
    pub at: u64,
    /// The number of the thread that ran before.
    pub from: u32,
    /// At what kind of point that was; none: it waited or ended.
    #[serde(with = "schedule::kind")]
    pub kind: Option<Point>,
    /// Where that was at its last point; empty if it was not recorded.
    pub place: String,
    /// The number of the thread that goes on.
    pub to: u32,
}

/// A thread of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Thread {
    /// Its name; empty if it has none.
    pub name: String,
    /// The number of its node; 0 is the test's own.
    pub node: u32,
    /// The number of the thread that made it; the first one's own.
    pub maker: u32,
    /// How many points it had.
    pub points: u64,
    /// Where it was at its last point, if it has not ended and that was recorded.
    pub place: String,
}

/// What is counted and kept of a run.
#[derive(Clone, Default, Debug)]
pub(crate) struct Seen {
    /// Of all steps. Two runs that do the same have the same.
    pub(crate) hash: u64,
    /// Of the order in which threads ran, without the times.
    pub(crate) order: u64,
    pub(crate) points: u64,
    pub(crate) instrumented: u64,
    pub(crate) steps: u64,
    pub(crate) switches: Vec<Switch>,
    /// Where the thread was that was left, for each switch.
    pub(crate) stacks: Vec<Stack>,
    pub(crate) trace: Vec<(Step, Stack)>,
    pub(crate) threads: Vec<(Thread, Stack)>,
    /// What the network and the simulator have done to the program: when, and what.
    pub(crate) faults: Vec<(u64, String)>,
    pub(crate) refused: Vec<String>,
}

/// A thread, as the run knows it.
struct Known {
    core: ThreadRef,
    node: u32,
    maker: u32,
    /// Its node has crashed.
    dead: bool,
    points: u64,
    /// Where it was at its last point, and its name then.
    stack: Stack,
    name: String,
}

/// A thread that is not chosen before its time.
struct Paused {
    until: u64,
    ready: Ready,
    number: u32,
}

struct Run {
    options: Options,
    streams: Streams,
    chooser: Chooser,
    threads: Vec<Known>,
    numbers: HashMap<u64, u32>,
    /// The node of the next thread, if it is not its maker's.
    next_node: Option<u32>,
    /// The rights to run, and who they are for, at the same places.
    ready: Vec<Ready>,
    candidates: Vec<Candidate>,
    paused: Vec<Paused>,
    /// The thread that ran last.
    running: Candidate,
    /// The kind of the point at which it is; none: it is at none.
    kind: Option<Point>,
    /// The point at which it was last.
    last: Option<Point>,
    /// The place of the thread that was chosen at the point.
    chosen: Option<usize>,
    /// How long the thread that yields next pauses.
    pause: u64,
    /// Until when nodes pause.
    node_pauses: Vec<(u32, u64)>,
    /// The point was the time of a timer: only now is it known which threads there are.
    undecided: bool,
    seen: Seen,
}

/// Whether there is a run; how it has ended.
static PHASE: AtomicU32 = AtomicU32::new(NEW);
/// The carrier has not begun.
const NEW: u32 = 8;
const IDLE: u32 = 0;
/// There is no thread yet.
const BEGUN: u32 = 1;
const RUNNING: u32 = 2;
/// The test has returned or panicked.
const RETURNED: u32 = 3;
const OVER: u32 = 4;
const DEADLOCK: u32 = 5;
const TOO_LONG: u32 = 6;
/// It ends as [`END`] says when the timers of the threads that are left are gone.
const ENDING: u32 = 7;

/// How the run ends.
static END: AtomicU32 = AtomicU32::new(IDLE);

static RUN: Lock<Option<Run>> = Lock::new(None);

/// Whether the run keeps stacks. Relaxed: only the run's carrier reads it, which begins later.
static STACKS: AtomicBool = AtomicBool::new(false);

/// How many of the instrumented places are left until the next one that is a point.
pub(crate) static COUNTDOWN: AtomicU32 = AtomicU32::new(u32::MAX);

/// Waits until the carrier has begun, and with it all that it allocates.
pub(crate) fn wait_for_carrier() {
    while PHASE.load(Ordering::SeqCst) == NEW {
        let _ = sys::futex_wait(&PHASE, NEW, Deadline::NEVER);
    }
}

/// Begins a run.
pub(crate) fn begin(options: Options) {
    let seed = options.seed;
    let mut streams = Streams::new(options.seed);
    let chooser = Chooser::new(options.strategy.clone(), &mut streams.schedule);
    let run = Run {
        chooser,
        streams,
        threads: Vec::with_capacity(1024),
        numbers: HashMap::with_capacity(1024),
        next_node: None,
        ready: Vec::with_capacity(1024),
        candidates: Vec::with_capacity(1024),
        paused: Vec::new(),
        running: Candidate {
            number: 0,
            points: 0,
        },
        kind: None,
        last: None,
        chosen: None,
        pause: 0,
        node_pauses: Vec::new(),
        undecided: false,
        seen: Seen::default(),
        options,
    };
    let mut place = RUN.lock();
    let run = place.insert(run);
    run.count_down();
    STACKS.store(run.options.stacks, Ordering::Relaxed);
    clock::reset();
    drop(place);
    net::begin(seed);
    PHASE.store(BEGUN, Ordering::SeqCst);
}

/// Notes that the test has returned. The last thing that its thread does.
pub(crate) fn returned() {
    PHASE.store(RETURNED, Ordering::SeqCst);
}

/// Waits for the end of the run. Returns how it ended but for a panic.
pub(crate) fn wait() -> Outcome {
    let (mut points, mut told) = (None, program::is_on());
    loop {
        match PHASE.load(Ordering::SeqCst) {
            OVER => return Outcome::Passed,
            DEADLOCK => return Outcome::Deadlock,
            TOO_LONG => return Outcome::TooLong,
            phase => {
                let waited = sys::futex_wait(&PHASE, phase, Deadline::after(LONG));
                let now = RUN.lock().as_ref().map(|run| run.seen.points);
                if waited == Err(Errno(libc::ETIMEDOUT)) && now == points && !told {
                    tell_that_it_hangs();
                    told = true;
                }
                points = now;
            }
        }
    }
}

/// Waits for the end of the run. Returns what was seen, and how it ended but for a panic.
pub(crate) fn end() -> (Outcome, Seen) {
    let outcome = wait();
    let run = RUN.lock().take();
    PHASE.store(IDLE, Ordering::SeqCst);
    (outcome, run.map(Run::seen).unwrap_or_default())
}

/// After this time of the machine without a point, the user is told where to look.
const LONG: Duration = Duration::from_secs(10);

/// Says that a thread computes for long, or spins where there is no point: no other thread goes on
/// meanwhile. Not by `eprintln!`, which the harness would capture until the test ends.
fn tell_that_it_hangs() {
    let run = RUN.lock();
    let Some(run) = run.as_ref() else { return };
    let (seed, thread) = (run.options.seed, run.running.number);
    let text = format!(
        "pirn: seed {seed}: thread {thread} has come to no point for {} s, so no other thread goes \
         on. If it waits for another one by looking again and again, it needs points there: `cargo \
         pirn sim test` has them at atomic operations, with --places also at loads and branches. \
         Where it is: pirn dump {}\n",
        LONG.as_secs(),
        std::process::id()
    );
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Returns what there was of the run so far, in a line.
pub(crate) fn line() -> String {
    let run = RUN.lock();
    let Some(Run { options, seen, .. }) = run.as_ref() else {
        return String::new();
    };
    let time = Duration::from_nanos(clock::now() - clock::START).as_secs_f64();
    let Seen { points, hash, .. } = seen;
    format!(
        "seed {}: {points} points, {time:.6} s, hash {hash:016x}",
        options.seed
    )
}

/// Calls `f` with the streams of the run, if there is one.
pub(crate) fn draw<R>(f: impl FnOnce(&mut Streams) -> R) -> Option<R> {
    RUN.lock().as_mut().map(|run| f(&mut run.streams))
}

/// Notes that a call is refused which cannot be by the seed: "setitimer in a simulation: …", and
/// what to do. Says so once.
pub(crate) fn refused(call: &'static str) {
    static SAID: Lock<Vec<&str>> = Lock::new(Vec::new());
    if let Some(run) = RUN.lock().as_mut()
        && !run.seen.refused.iter().any(|it| it == call)
    {
        run.seen.refused.push(call.to_owned());
    }
    let mut said = SAID.lock();
    if !said.contains(&call) {
        said.push(call);
        sys::complain(&["pirn: ", call, "\n"]);
    }
}

/// The node of threads that belong to none.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Returns the seed of the run; 0 between runs.
pub(crate) fn seed() -> u64 {
    RUN.lock().as_ref().map_or(0, |run| run.options.seed)
}

/// Returns whether the calling thread is one of the run's.
pub(crate) fn is_inside_run() -> bool {
    own_number().is_some()
}

fn own_number() -> Option<u32> {
    let own = vthread::current()?;
    RUN.lock().as_ref()?.numbers.get(&own.id()).copied()
}

/// Returns the node of the calling thread.
pub(crate) fn own_node() -> u32 {
    let node = |number| {
        RUN.lock()
            .as_ref()
            .map(|run| run.threads[number as usize].node)
    };
    own_number().and_then(node).unwrap_or(0)
}

/// Makes a thread on a node.
pub(crate) fn spawn_on(node: u32, f: impl FnOnce() + Send + 'static) {
    if let Some(run) = RUN.lock().as_mut() {
        run.next_node = Some(node);
    }
    drop(std::thread::spawn(f));
}

/// Makes the threads of a node go on never.
pub(crate) fn kill(node: u32) {
    let mut run = RUN.lock();
    let Some(run) = run.as_mut() else { return };
    for thread in run.threads.iter_mut().filter(|it| it.node == node) {
        thread.dead = true;
    }
    for place in (0..run.candidates.len()).rev() {
        if run.is_dead(run.candidates[place].number) {
            run.candidates.remove(place);
            let _stays = run.ready.remove(place).into_raw();
        }
    }
    for place in (0..run.paused.len()).rev() {
        if run.is_dead(run.paused[place].number) {
            let _stays = run.paused.remove(place).ready.into_raw();
        }
    }
}

/// Lets no thread of a node go on until a time.
pub(crate) fn pause(node: u32, until: u64) {
    let mut run = RUN.lock();
    let Some(run) = run.as_mut() else { return };
    run.node_pauses.retain(|it| it.1 > clock::now());
    run.node_pauses.push((node, until));
    for paused in &mut run.paused {
        if run.threads[paused.number as usize].node == node {
            paused.until = paused.until.max(until);
        }
    }
    for place in (0..run.candidates.len()).rev() {
        let number = run.candidates[place].number;
        if run.threads[number as usize].node == node {
            run.candidates.remove(place);
            let ready = run.ready.remove(place);
            run.add_or_pause(ready, number);
        }
    }
}

/// Leaves the calling thread, whose node has crashed.
pub(crate) fn leave_for_ever() {
    loop {
        std::thread::yield_now();
    }
}

/// Notes what happens to the program.
pub(crate) fn note_fault(what: impl FnOnce() -> String) {
    if let Some(run) = RUN.lock().as_mut().filter(|run| run.options.trace) {
        run.seen.faults.push((clock::now() - clock::START, what()));
    }
}

/// Returns the name of the running thread, which it may have given itself, or has from its maker.
fn own_name(thread: &Core) -> String {
    if let Some(name) = thread.name() {
        return name.to_owned();
    }
    let mut name = [0_u8; 16];
    // SAFETY: so much room is there; the thread is alive.
    unsafe { libc::pthread_getname_np(libc::pthread_self(), name.as_mut_ptr().cast(), 16) };
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Mixes a step into the hash of those before it.
fn hashed(before: u64, step: u64) -> u64 {
    (before ^ step)
        .wrapping_mul(0x0100_0000_01b3)
        .rotate_left(13)
}

fn finish(phase: u32) {
    clock::stop();
    END.store(phase, Ordering::SeqCst);
    PHASE.store(ENDING, Ordering::SeqCst);
}

fn is_over() -> bool {
    !matches!(PHASE.load(Ordering::SeqCst), BEGUN | RUNNING | RETURNED)
}

impl Run {
    /// Returns what was seen.
    fn seen(mut self) -> Seen {
        let threads = self.threads.iter().enumerate().map(|(number, it)| {
            // A thread without a name has its maker's, as the kernel's threads have.
            let is_own = number == 0 || it.name != self.threads[it.maker as usize].name;
            let thread = Thread {
                name: if is_own {
                    it.name.clone()
                } else {
                    String::new()
                },
                node: it.node,
                maker: it.maker,
                points: it.points,
                place: String::new(),
            };
            match it.core.has_ended() {
                true => (thread, Stack::default()),
                false => (thread, Arc::clone(&it.stack)),
            }
        });
        self.seen.threads = threads.collect();
        self.seen
    }

    /// Returns the number of a thread of this run; `None`: it is one of an earlier run, or of a
    /// node that has crashed.
    fn number(&mut self, thread: &Core, cause: Cause) -> Option<u32> {
        if let Some(number) = self.numbers.get(&thread.id()) {
            return Some(*number).filter(|&number| !self.threads[number as usize].dead);
        }
        if cause != Cause::Start {
            return None;
        }
        let number = self.threads.len() as u32;
        let maker = vthread::current().and_then(|maker| self.numbers.get(&maker.id()));
        let maker = maker.copied().unwrap_or(0);
        let node = self.threads.get(maker as usize).map_or(0, |it| it.node);
        self.threads.push(Known {
            core: thread.to_ref(),
            node: self.next_node.take().unwrap_or(node),
            maker,
            dead: false,
            points: 0,
            stack: Stack::default(),
            name: thread.name().unwrap_or_default().to_owned(),
        });
        self.numbers.insert(thread.id(), number);
        self.chooser.made(&mut self.streams.schedule);
        Some(number)
    }

    fn is_dead(&self, number: u32) -> bool {
        self.threads[number as usize].dead
    }

    fn candidate(&self, number: u32) -> Candidate {
        Candidate {
            number,
            points: self.threads[number as usize].points,
        }
    }

    fn add(&mut self, ready: Ready, number: u32) {
        self.candidates.push(self.candidate(number));
        self.ready.push(ready);
    }

    /// Adds a thread that goes on after the pause that was drawn for it, and after its node's.
    fn add_or_pause(&mut self, ready: Ready, number: u32) {
        let now = clock::now();
        let own = now + core::mem::take(&mut self.pause);
        let node = self.threads[number as usize].node;
        let of_node = self.node_pauses.iter().filter(|it| it.0 == node);
        match of_node.map(|it| it.1).fold(own, u64::max) {
            until if until <= now => self.add(ready, number),
            until => self.paused.push(Paused {
                until,
                ready,
                number,
            }),
        }
    }

    /// Takes the thread at `place`, which runs from now on.
    fn take(&mut self, place: usize) -> Ready {
        let (next, ready) = (
            self.candidates.swap_remove(place),
            self.ready.swap_remove(place),
        );
        // A thread that waits is followed by the oldest one if nothing else is said.
        let is_plain = self.kind.is_none()
            && self
                .candidates
                .iter()
                .all(|other| other.number > next.number);
        let stays = self.kind.is_some() && next.number == self.running.number;
        if !is_plain && !stays {
            self.seen.switches.push(Switch {
                from: self.running.number,
                at: self.running.points,
                waits: self.kind.is_none(),
                to: next.number,
                kind: self.last,
            });
            if self.options.stacks {
                self.seen.stacks.push(self.stack_of_running());
            }
        }
        self.note(next.number);
        (self.running, self.kind, self.last) = (next, None, None);
        ready
    }

    /// Notes that a thread goes on.
    fn note(&mut self, to: u32) {
        let kind = self.kind.map_or(0, |kind| kind as u64 + 1);
        let step = u64::from(to) << 40 ^ kind << 56;
        self.seen.hash = hashed(self.seen.hash, clock::now() ^ step);
        if to != self.running.number {
            self.seen.order = hashed(self.seen.order, step ^ self.running.points);
        }
        self.seen.steps += 1;
        if self.options.trace {
            let step = Step {
                at: clock::now() - clock::START,
                from: self.running.number,
                kind: self.kind,
                place: String::new(),
                to,
            };
            self.seen.trace.push((step, self.stack_of_running()));
        }
        if self.seen.steps == self.options.stop {
            crate::trace::stop(self.seen.steps);
        }
    }

    /// Returns where the thread that ran last was at its last point.
    fn stack_of_running(&self) -> Stack {
        let number = self.running.number as usize;
        self.threads
            .get(number)
            .map_or_else(Stack::default, |it| Arc::clone(&it.stack))
    }

    /// Draws after how many instrumented places there is a point.
    fn count_down(&mut self) {
        let places = match u64::from(self.options.places) {
            0 => u32::MAX,
            // Between 1 and twice the mean.
            mean => 1 + self.streams.places.below(2 * mean - 1) as u32,
        };
        COUNTDOWN.store(places, Ordering::Relaxed); // Relaxed: the carrier's own.
    }

    /// Returns whether another thread may follow the running one.
    fn decide(&mut self) -> bool {
        let (running, point) = (self.running, self.seen.points);
        if self.options.pauses > 0 {
            let drawn = self.drawn(Purpose::Pause);
            if random::scaled(drawn, self.options.pauses) == 0 {
                // The bits that `scaled` has looked at last.
                let length = drawn.wrapping_mul(self.options.pauses);
                self.pause = 1 + random::scaled(length, self.options.longest_pause.max(1));
                return true;
            }
        }
        let stream = &mut self.streams.schedule;
        self.chosen = self
            .chooser
            .at_point(running, point, &self.candidates, stream);
        self.chosen.is_some()
    }

    /// Returns a number for the point at which the running thread is.
    fn drawn(&self, purpose: Purpose) -> u64 {
        let Candidate { number, points } = self.running;
        random::at(self.options.seed, purpose, number, points)
    }

    /// Makes the threads runnable whose pause is over.
    fn end_pauses(&mut self) {
        let now = clock::now();
        // In the order in which they end.
        while let Some(place) = self
            .first_paused()
            .filter(|&it| self.paused[it].until <= now)
        {
            let Paused { ready, number, .. } = self.paused.swap_remove(place);
            self.add(ready, number);
        }
    }

    fn first_paused(&self) -> Option<usize> {
        let until = |&place: &usize| (self.paused[place].until, self.paused[place].number);
        (0..self.paused.len()).min_by_key(until)
    }
}

/// Returns when a thread can run at the earliest, if none can now; `u64::MAX`: never.
fn next_time(run: &Run, due: Deadline) -> u64 {
    let paused = run.first_paused().map(|place| run.paused[place].until);
    paused.unwrap_or(u64::MAX).min(due.nanos())
}

/// What decides in the scheduler's place.
pub(crate) struct World;

impl Simulator for World {
    fn runnable(&self, ready: Ready, cause: Cause) {
        let mut run = RUN.lock();
        if let Some(run) = run.as_mut().filter(|_| !is_over())
            && let Some(number) = run.number(ready.core(), cause)
        {
            run.add_or_pause(ready, number);
            if run.kind.is_none() && cause == Cause::Yield {
                run.chooser.yielded(number); // By the program itself.
            }
        } else {
            let _stays = ready.into_raw(); // Never to run again.
        }
        // Under the lock: the carrier takes a run without threads for one that waits.
        let begun = PHASE.compare_exchange(BEGUN, RUNNING, Ordering::SeqCst, Ordering::SeqCst);
        drop(run);
        if begun.is_ok() {
            sys::futex_wake(&PHASE, i32::MAX); // The carrier waits for the first thread.
        }
    }

    fn next(&self) -> Option<Ready> {
        let mut run = RUN.lock();
        let run = run.as_mut().filter(|_| !is_over())?;
        run.end_pauses();
        if run.candidates.is_empty() {
            return None;
        }
        let stream = &mut run.streams.schedule;
        let place = match run.chosen.take() {
            Some(place) => place,
            None if core::mem::take(&mut run.undecided) => {
                let own = |it: &Candidate| it.number == run.running.number;
                let own = run.candidates.iter().position(own)?;
                let mut others = run.candidates.clone();
                others.swap_remove(own);
                let chosen = run
                    .chooser
                    .at_point(run.running, run.seen.points, &others, stream);
                let number = chosen.map_or(run.running.number, |place| others[place].number);
                run.candidates.iter().position(|it| it.number == number)?
            }
            None => run.chooser.after_wait(run.running, &run.candidates, stream),
        };
        net::thread_runs();
        Some(run.take(place))
    }

    fn is_followed(&self, thread: &Core, kind: Point, due: Deadline) -> bool {
        let stacks = STACKS.load(Ordering::Relaxed);
        let seen = stacks.then(|| (stacks::here(), own_name(thread)));
        let mut run = RUN.lock();
        let Some(run) = run.as_mut().filter(|_| !is_over()) else {
            return true; // A thread of an earlier run, or of one that has failed.
        };
        let Some(&number) = run.numbers.get(&thread.id()) else {
            return true;
        };
        run.seen.points += 1;
        run.seen.instrumented += u64::from(matches!(kind, Point::Atomic | Point::Place));
        run.threads[number as usize].points += 1;
        if let Some(seen) = seen {
            let thread = &mut run.threads[number as usize];
            (thread.stack, thread.name) = seen;
        }
        run.running = run.candidate(number);
        run.last = Some(kind);
        run.count_down();
        if run.seen.points > run.options.most_points {
            finish(TOO_LONG);
            return true;
        }
        clock::pass(50 + random::scaled(run.drawn(Purpose::Cost), 100));
        run.end_pauses();
        run.undecided = due.nanos() <= clock::now();
        let followed = run.undecided || run.decide();
        run.kind = (followed && run.pause == 0).then_some(kind); // A pause is a wait.
        followed
    }

    fn meets(&self, running: &Core, fault: Fault) -> bool {
        let mut run = RUN.lock();
        let Some(run) = run.as_mut().filter(|_| !is_over()) else {
            return false;
        };
        let Some(&number) = run.numbers.get(&running.id()) else {
            return false;
        };
        let (one_in, purpose) = match fault {
            Fault::SpuriousWake => (run.options.spurious_wakes, Purpose::SpuriousWake),
            Fault::Spawn => (run.options.failing_spawns, Purpose::Spawn),
        };
        let points = run.threads[number as usize].points;
        let drawn = random::at(run.options.seed, purpose, number, points);
        let meets = one_in > 0 && random::scaled(drawn, one_in) == 0;
        if meets && run.options.trace {
            let at = clock::now() - clock::START;
            let what = format!("thread {number} meets {fault:?}");
            run.seen.faults.push((at, what));
        }
        meets
    }

    fn joined(&self, thread: u64) {
        run::note_join(thread);
    }

    fn expects_events(&self) -> bool {
        net::is_due() || timers::are_used() || program::is_on()
    }

    fn expects_others(&self, due: Deadline) -> Option<Deadline> {
        let event = net::next_event(); // Not under the lock.
        program::expects_others(next_time(RUN.lock().as_ref()?, due).min(event))
    }

    fn advance(&self, due: Deadline) {
        let (phase, next, pauses) = {
            let run = RUN.lock();
            // The test's own thread, which a platform thread makes, may have come meanwhile.
            if run.as_ref().is_some_and(|run| !run.candidates.is_empty()) && !is_over() {
                return;
            }
            let next = |run: &Run| next_time(run, due);
            (
                PHASE.load(Ordering::SeqCst),
                run.as_ref().map_or(u64::MAX, next),
                run.as_ref().is_some_and(|run| !run.paused.is_empty()),
            )
        };
        match phase {
            RUNNING if !net::looked() => {}
            // A thread that pauses may hold the lock of a static, which the next run needs.
            RETURNED if !pauses => finish(OVER),
            RUNNING | RETURNED => match next.min(net::next_event()) {
                u64::MAX => finish(DEADLOCK),
                next => clock::go_to(next),
            },
            // The threads that wake are ignored. In the next run, their timers would make points.
            ENDING if due.nanos() < u64::MAX => clock::go_to(due.nanos()),
            ENDING => {
                PHASE.store(END.load(Ordering::SeqCst), Ordering::SeqCst);
                sys::futex_wake(&PHASE, i32::MAX);
            }
            NEW => {
                // A run may begin at the same time.
                let order = Ordering::SeqCst;
                let _ = PHASE.compare_exchange(NEW, IDLE, order, order);
                sys::futex_wake(&PHASE, i32::MAX);
            }
            _ => {
                let _ = sys::futex_wait(&PHASE, phase, Deadline::NEVER); // Until a run has a thread.
            }
        }
    }
}
