//! A snapshot of all metrics.

use super::{Latency, Memory};
use std::time::Duration;

/// What a runtime has counted since its start, and how much there is of everything.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// The virtual threads that there are, by state.
    pub threads: Threads,
    /// Virtual threads started.
    pub started: u64,
    /// Virtual threads that have ended.
    pub ended: u64,
    /// Virtual threads whose code panicked. They are among those that have ended, or will be.
    pub panicked: u64,
    /// Interrupts of virtual threads, those by the cancellation of a scope or task included.
    pub interrupts: u64,
    /// Threads taken off their carrier in the middle of a computation, because others waited.
    pub preemptions: u64,
    /// Threads unmounted to wait.
    pub parks: Parks,
    /// Threads made runnable after they had been unmounted to wait.
    pub wakes: u64,
    /// Threads mounted on a carrier: at their start, after a wait, a yield or a preemption. A
    /// carrier that runs is behind by up to 60.
    pub mounts: u64,
    /// Takings of threads from another carrier's run queue: about half of it each time.
    pub steals: u64,
    /// For how long threads were runnable before they ran. Timed is one start, and one wake, out of
    /// 64.
    pub schedule_latency: Latency,
    /// How many virtual threads may run at the same time: `PIRN_PARALLELISM`.
    pub parallelism: usize,
    /// The carriers, each with what it has counted; spare ones that rest included.
    pub carriers: Vec<Carrier>,
    /// Carriers in use beyond the parallelism, because others are stuck.
    pub spare_carriers: usize,
    /// Runnable threads in the runtime's queues. Those that a `Scheduler` of
    /// the program keeps are not among them.
    pub run_queue: usize,
    /// Calls made by platform threads while the virtual thread was parked.
    pub offloaded_calls: Offloaded,
    /// The platform threads for such calls that there are.
    pub offload_threads: usize,
    /// Armed timers: sleeps, and waits with a time limit.
    pub timers: usize,
    /// Descriptors that are registered with the runtime's epoll instance.
    pub descriptors: usize,
    /// Open scopes.
    pub scopes: usize,
    /// The slots of stacks, by state.
    pub stack_slots: StackSlots,
    /// Events that were overwritten before a recording had read them, in all recordings.
    pub events_dropped: u64,
    /// The memory of virtual threads.
    pub memory: Memory,
    /// How often each diagnostic was found, by name.
    pub(super) diagnostics: Vec<(&'static str, u64)>,
}

/// The numbers of virtual threads by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Threads {
    /// Threads that have been started and have not run yet.
    pub new: u64,
    /// Threads that could run, and have before.
    pub runnable: u64,
    /// Threads that are mounted on a carrier.
    pub running: u64,
    /// Threads that wait for something, unmounted.
    pub waiting: u64,
}

impl Threads {
    /// Returns the number of all threads that have been started and have not ended.
    pub fn all(&self) -> u64 {
        self.new + self.runnable + self.running + self.waiting
    }
}

/// How often threads were unmounted to wait, by what they waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parks(pub(super) Vec<(&'static str, u64)>);

impl Parks {
    /// Returns how often threads waited, whatever for.
    pub fn all(&self) -> u64 {
        self.by_kind().map(|(_, count)| count).sum()
    }

    /// Returns how often threads waited for what: words such as `futex`, `read`, `sleep`, in a
    /// fixed order. There may be more of them in later versions.
    pub fn by_kind(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// Calls made by platform threads for virtual ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offloaded {
    /// Calls that end by themselves (file I/O, name lookup), made by the pool.
    pub bounded: u64,
    /// Calls that wait for somebody, made by a platform thread each.
    pub dedicated: u64,
}

/// The numbers of slots by state. A slot is the memory of one virtual thread: its stack and its
/// thread-locals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackSlots {
    /// Slots that a virtual thread has.
    pub used: u64,
    /// Free ones that keep the memory that they have touched, for the next threads.
    pub cached: u64,
    /// Free ones whose memory has been given back, but for what the guard page takes.
    pub free: u64,
    /// Free ones that are address space only.
    pub closed: u64,
}

/// A right to run virtual threads, one of [`parallelism`](Metrics::parallelism), and the carrier
/// that has it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Carrier {
    /// The number of the carrier, as in dumps and in the name of its thread.
    pub number: usize,
    /// The number of the processor. What is counted below is counted by processor: a carrier that
    /// wakes takes whichever is free.
    pub processor: usize,
    /// What the carrier does.
    pub state: CarrierState,
    /// The kernel's id of the platform thread; `None` while it sleeps.
    pub tid: Option<u32>,
    /// Whether it is one beyond the parallelism, which sleeps until it is needed.
    pub spare: bool,
    /// The runnable threads in its own queue.
    pub run_queue: usize,
    /// Threads mounted here.
    pub mounts: u64,
    /// Threads unmounted here to wait.
    pub parks: u64,
    /// Threads made runnable here.
    pub wakes: u64,
    /// Threads started here.
    pub started: u64,
    /// Threads that ended here.
    pub ended: u64,
    /// Takings of threads from other queues.
    pub steals: u64,
    /// Threads preempted here.
    pub preemptions: u64,
    /// How often it was stuck.
    pub stuck_episodes: u64,
    /// For how long it was stuck in all, the present episode included.
    pub stuck: Duration,
}

/// What a carrier does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CarrierState {
    /// It runs a virtual thread, or is about to.
    Running,
    /// It has run out of threads and looks for one.
    Searching,
    /// It waits for events.
    Sleeping,
    /// The thread that it runs has kept it for 4 ms or more, and cannot be preempted: it is blocked
    /// in the kernel, or computes where it must not be interrupted.
    Stuck,
}

impl CarrierState {
    pub(super) const ALL: [CarrierState; 4] = [
        CarrierState::Running,
        CarrierState::Searching,
        CarrierState::Sleeping,
        CarrierState::Stuck,
    ];

    /// Returns the state in one word, as in the text for Prometheus.
    pub fn name(self) -> &'static str {
        match self {
            CarrierState::Running => "running",
            CarrierState::Searching => "searching",
            CarrierState::Sleeping => "sleeping",
            CarrierState::Stuck => "stuck",
        }
    }
}
