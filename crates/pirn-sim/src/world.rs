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
//! A run ends when the test has returned and no other thread can run at once; or fails: all threads
//! wait (a deadlock), or there were too many points. Threads that are left are never chosen again.
//! Their stacks stay, and so do their timers, whose wakes are ignored.

use crate::random::{self, Purpose, Streams};
use crate::schedule::Switch;
use crate::strategy::{Candidate, Chooser, Strategy};
use crate::{clock, net, program};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use pirn_rt::lock::Lock;
use pirn_rt::sched::Cause;
use pirn_rt::sched::simulation::{Point, Simulator};
use pirn_rt::sys;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::{self, Core, Ready};
use std::collections::HashMap;

/// What a run is to be like.
#[derive(Clone, Debug)]
pub struct Options {
    /// From which all random numbers come.
    pub seed: u64,
    /// How threads are chosen.
    pub strategy: Strategy,
    /// Of the instrumented loads, stores and edges, one in this many is a point on average; 0:
    /// none.
    pub places: u32,
    /// One point in this many is a pause of its thread; 0: none.
    pub pauses: u64,
    /// The longest pause, in nanoseconds.
    pub longest_pause: u64,
    /// A run with more points fails: threads seem to wait for each other by spinning.
    pub most_points: u64,
    /// Whether the report has each step.
    pub trace: bool,
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The test has returned.
    Passed,
    /// The test has panicked, with this message.
    Panicked(String),
    /// All threads wait, for each other or for nothing that is to come.
    Deadlock,
    /// The run had [`Options::most_points`] points.
    TooLong,
}

/// A step of a run: a thread goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The virtual time since the beginning, in nanoseconds.
    pub at: u64,
    /// The number of the thread.
    pub thread: u32,
    /// At what kind of point the thread before was; none: it waited or ended.
    pub kind: Option<Point>,
}

/// What is counted and kept of a run.
#[derive(Clone, Default, Debug)]
pub(crate) struct Seen {
    /// Of all steps. Two runs that do the same have the same.
    pub(crate) hash: u64,
    pub(crate) points: u64,
    pub(crate) switches: Vec<Switch>,
    pub(crate) trace: Vec<Step>,
}

struct Thread {
    node: u32,
    /// Its node has crashed.
    dead: bool,
    points: u64,
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
    threads: Vec<Thread>,
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
    /// The point was the time of a timer: only now is it known which threads there are.
    undecided: bool,
    seen: Seen,
}

/// Whether there is a run; how it has ended.
static PHASE: AtomicU32 = AtomicU32::new(NEW);
/// The carrier has not begun.
const NEW: u32 = 7;
const IDLE: u32 = 0;
/// There is no thread yet.
const BEGUN: u32 = 1;
const RUNNING: u32 = 2;
/// The test has returned or panicked.
const RETURNED: u32 = 3;
const OVER: u32 = 4;
const DEADLOCK: u32 = 5;
const TOO_LONG: u32 = 6;

static RUN: Lock<Option<Run>> = Lock::new(None);

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
        undecided: false,
        seen: Seen::default(),
        options,
    };
    let mut place = RUN.lock();
    let run = place.insert(run);
    run.count_down();
    clock::reset();
    drop(place);
    net::reset();
    PHASE.store(BEGUN, Ordering::SeqCst);
}

/// Notes that the test has returned. The last thing that its thread does.
pub(crate) fn returned() {
    PHASE.store(RETURNED, Ordering::SeqCst);
}

/// Waits for the end of the run. Returns how it ended but for a panic.
pub(crate) fn wait() -> Outcome {
    loop {
        match PHASE.load(Ordering::SeqCst) {
            OVER => return Outcome::Passed,
            DEADLOCK => return Outcome::Deadlock,
            TOO_LONG => return Outcome::TooLong,
            phase => {
                let _ = sys::futex_wait(&PHASE, phase, Deadline::NEVER);
            }
        }
    }
}

/// Waits for the end of the run. Returns what was seen, and how it ended but for a panic.
pub(crate) fn end() -> (Outcome, Seen) {
    let outcome = wait();
    let run = RUN.lock().take();
    PHASE.store(IDLE, Ordering::SeqCst);
    (outcome, run.map(|run| run.seen).unwrap_or_default())
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

/// Leaves the calling thread, whose node has crashed.
pub(crate) fn leave_for_ever() {
    loop {
        std::thread::yield_now();
    }
}

fn finish(phase: u32) {
    PHASE.store(phase, Ordering::SeqCst);
    sys::futex_wake(&PHASE, i32::MAX);
}

fn is_over() -> bool {
    !matches!(PHASE.load(Ordering::SeqCst), BEGUN | RUNNING | RETURNED)
}

impl Run {
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
        let node = maker.map_or(0, |maker| self.threads[*maker as usize].node);
        self.threads.push(Thread {
            node: self.next_node.take().unwrap_or(node),
            dead: false,
            points: 0,
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

    /// Adds a thread that goes on after the pause that was drawn for it, if any.
    fn add_or_pause(&mut self, ready: Ready, number: u32) {
        match core::mem::take(&mut self.pause) {
            0 => self.add(ready, number),
            pause => self.paused.push(Paused {
                until: clock::now() + pause,
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
        }
        self.note(next.number);
        (self.running, self.kind, self.last) = (next, None, None);
        ready
    }

    fn note(&mut self, thread: u32) {
        let kind = self.kind.map_or(0, |kind| kind as u64 + 1);
        let step = clock::now() ^ u64::from(thread) << 40 ^ kind << 56;
        self.seen.hash = (self.seen.hash ^ step)
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(13);
        if self.options.trace {
            self.seen.trace.push(Step {
                at: clock::now() - clock::START,
                thread,
                kind: self.kind,
            });
        }
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
        Some(run.take(place))
    }

    fn is_followed(&self, thread: &Core, kind: Point, due: Deadline) -> bool {
        let mut run = RUN.lock();
        let Some(run) = run.as_mut().filter(|_| !is_over()) else {
            return true; // A thread of an earlier run, or of one that has failed.
        };
        let Some(&number) = run.numbers.get(&thread.id()) else {
            return true;
        };
        run.seen.points += 1;
        run.threads[number as usize].points += 1;
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

    fn expects_events(&self) -> bool {
        net::is_used() || program::is_on()
    }

    fn expects_others(&self, due: Deadline) -> Option<Deadline> {
        program::expects_others(next_time(RUN.lock().as_ref()?, due))
    }

    fn advance(&self, due: Deadline) {
        let (phase, next) = {
            let run = RUN.lock();
            // The test's own thread, which a platform thread makes, may have come meanwhile.
            if run.as_ref().is_some_and(|run| !run.candidates.is_empty()) && !is_over() {
                return;
            }
            let next = |run: &Run| next_time(run, due);
            (
                PHASE.load(Ordering::SeqCst),
                run.as_ref().map_or(u64::MAX, next),
            )
        };
        match phase {
            RUNNING => match next {
                u64::MAX => finish(DEADLOCK),
                next => clock::go_to(next),
            },
            RETURNED => finish(OVER),
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
