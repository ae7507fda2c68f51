//! The seams for a simulation: what decides in the scheduler's place which thread runs next, and
//! what time it is.
//!
//! A simulated runtime has one carrier, no monitor, and a [`Simulator`]. No thread goes on the
//! processor's queue: their [`Home`](crate::vthread::record::Home) says that they are queued
//! elsewhere, as for threads with a scheduler of the program. So other runtimes pay one load for
//! each [`point`], and nothing else.
//!
//! ```text
//!   a thread becomes runnable      sched::inject       runnable()
//!   a thread comes to a point      point               is_followed() ----> true: yields
//!   a thread leaves                carriers: next      next()
//!   no thread is runnable                              advance()
//! ```

use super::mount::{After, suspend};
use super::{Cause, Runtime};
use crate::sys;
use crate::time::Deadline;
use crate::vthread::{self, Core, Current, Ready, parkable};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A place in the program at which another thread may be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Point {
    /// A thread has been started.
    Spawn,
    /// A futex call.
    Futex,
    /// A lock of C's is about to be taken.
    Lock,
    /// A lock of C's has been released.
    Unlock,
    /// A call that may block.
    Call,
    /// An atomic operation.
    Atomic,
    /// A load, a store, or an edge of the flow of control.
    Place,
}

/// A fault that the simulator may play, where the program must expect it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// A futex wait returns without a wake.
    SpuriousWake,
    /// A thread cannot be made.
    Spawn,
}

/// Decides in the scheduler's place. Only the runtime's carrier calls it, in sections in which
/// nothing suspends; [`runnable`](Self::runnable) may be called by other platform threads as well.
pub trait Simulator: Sync {
    /// Takes the right to run a thread, which has become runnable for this reason.
    fn runnable(&self, thread: Ready, cause: Cause);

    /// Returns the thread to run next.
    fn next(&self) -> Option<Ready>;

    /// Returns whether another thread may follow the running one, which is at a point of this kind,
    /// and goes on otherwise. `due` is when the next timer is due.
    fn is_followed(&self, running: &Core, kind: Point, due: Deadline) -> bool;

    /// Returns whether the running thread meets this fault now.
    fn meets(&self, running: &Core, fault: Fault) -> bool;

    /// Returns whether descriptors may have become ready without a wait.
    fn expects_events(&self) -> bool;

    /// Notes that a thread has been joined, by its id: the joiner learns of a panic.
    fn joined(&self, thread: u64);

    /// Returns until when the carrier is to wait for descriptors, by the machine's clock, before it
    /// calls [`advance`](Self::advance): if no thread is runnable, and other processes may write to
    /// them. `due` is when the next timer is due.
    fn expects_others(&self, due: Deadline) -> Option<Deadline>;

    /// Called if no thread is runnable. Lets the time go on to `due`, when the next timer is due,
    /// or waits until there is another thread.
    fn advance(&self, due: Deadline);
}

/// Whether a simulation runs.
static RUNS: AtomicBool = AtomicBool::new(false);

/// Notes whether a simulation runs: only then there are points.
pub fn set_running(running: bool) {
    RUNS.store(running, Relaxed); // Relaxed: the threads of a simulation come after it.
}

/// Returns whether a simulation runs.
#[inline(always)]
pub fn is_running() -> bool {
    RUNS.load(Relaxed) // Relaxed: see `set_running`.
}

/// A point at which another thread may be chosen, if a simulation runs.
#[inline(always)]
pub fn point(kind: Point) {
    if is_running() {
        offer(kind);
    }
}

/// Returns whether the running thread meets this fault now: never, but in a simulation.
#[inline(always)]
pub fn meets(fault: Fault) -> bool {
    is_running() && simulator().is_some_and(|(running, it)| it.meets(&running, fault))
}

/// Returns the running thread and the simulator that decides for it.
#[cold]
#[inline(never)]
fn simulator() -> Option<(Current, &'static dyn Simulator)> {
    let running = vthread::current()?;
    let simulator = Runtime::of(&running).settings.simulator?;
    Some((running, simulator))
}

/// Tells the simulator, if there is one, that the running thread joins another.
pub fn note_join(joined: &Core) {
    if is_running()
        && let Some((_, simulator)) = simulator()
    {
        simulator.joined(joined.id());
    }
}

#[cold]
#[inline(never)]
fn offer(kind: Point) {
    let Some(running) = parkable() else { return };
    let runtime = Runtime::of(&running);
    let Some(simulator) = runtime.settings.simulator else {
        return;
    };
    // The program may look at it after the point.
    let errno = sys::errno();
    if simulator.is_followed(&running, kind, runtime.timers.next_deadline()) {
        suspend(running, After::Yield);
    }
    sys::set_errno(sys::Errno(errno));
}
