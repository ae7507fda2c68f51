//! The monitor: a platform thread that looks after the processors while any of them is busy.
//!
//! The protocols of [`idle`](crate::sched::idle) wake as few carriers as possible, on the
//! assumption that a running carrier comes back to its queue soon. A thread that computes for long
//! breaks that assumption; the monitor repairs it. On every tick it checks whether
//! * a thread waits in the queue of a processor that has not switched since the last tick, or
//! * a timer is late (its processor is busy, and the sleepers do not know of it).
//!
//! If so, it wakes a carrier for an idle processor. If all processors are stuck, it adds a
//! [spare](crate::sched::spare) one, even if only to fetch events. When everything has been idle
//! for a while it sleeps.

use super::policy::Policy;
use crate::blocking::fds::review;
use crate::environment;
use crate::recorder::kinds;
use crate::sanitizer::valgrind;
use crate::sched::spare::Spare;
use crate::sched::stuck::Episode;
use crate::sched::{Processor, Runtime, os_thread, preempt, recorded, safepoint};
use crate::stack::pool::CACHE;
use crate::sys;
use crate::time::{self, Deadline};
use crate::vthread::{signals, start_helper};
use core::sync::atomic::Ordering;
use std::io;

/// Length of a tick while there is something to look after.
const TICK_NS: u64 = 1_000_000;
/// Length of a tick while a running thread must be interrupted at a safe point.
const SAFE_POINT_NS: u64 = 250_000;
/// A processor is stuck once one thread has run on it, or has been blocked in the kernel, for this
/// long: about one time slice of a platform thread (`base_slice_ns` of the kernel's scheduler is
/// 3 ms).
const STUCK_NS: u64 = 4_000_000;
/// The CPU time that a blocked thread may use and still count as blocked. It uses some to show its
/// stack to a dump, when it waits for the reader for at most 1 ms. Without this limit each dump
/// would end the episode and begin another, which is counted, timed and reported anew.
const SHOWING_NS: u64 = 2_000_000;
/// The number of threads that the kernel is asked about per look. The next look asks about others.
const INQUIRIES: u32 = 4;
/// A processor is let go when there have been more than needed for this long. It is above
/// [`STUCK_NS`], so that a thread that computes, yields once and computes on does not cause it.
const SURPLUS_NS: u64 = 2 * STUCK_NS;
/// The number of idle ticks after which the monitor sleeps: 19 ms, as each is longer than the one
/// before.
const PATIENCE: u32 = 6;

/// Memory that must be left for a new carrier: its stack, and several times its allocations.
const ROOM: usize = 16 << 20;

/// Starts the monitor.
pub(super) fn start(runtime: &'static Runtime) -> io::Result<()> {
    start_helper("pirn-monitor", 64 << 10, move || run(runtime))
}

fn run(runtime: &'static Runtime) {
    valgrind::note_platform_thread();
    os_thread::prefer_punctuality();
    signals::block_others();
    // A tool that wants to look inside sends it to this thread: see `pirn-observe/server/`.
    sys::unblock_signal(preempt::SIGNAL);
    let mut monitor = Monitor::new(runtime);
    let mut policy = Policy::new(runtime);
    let mut idle_for = 0;
    let mut nothing_to_do = 0u32;
    loop {
        // Backs off to 10 ms while it has nothing to repair, and to 4 ms while all are idle, but
        // not while all are busy: the monitor needs two looks to see that a thread keeps its
        // processor, and with 10 ms between them a 1 ms ticker was late by 20 ms when its fellows
        // began to compute.
        let requested = safepoint::is_hot();
        let tick = match runtime.idle.count() {
            _ if requested => SAFE_POINT_NS,
            0 => TICK_NS,
            _ => TICK_NS * u64::from((1 + nothing_to_do / 50).min(10).max(1 << idle_for.min(2))),
        };
        policy.rest(tick);
        time::tick();
        if requested {
            safepoint::interrupt_all();
        }
        idle_for = if runtime.all_idle() { idle_for + 1 } else { 0 };
        if idle_for > 0 && runtime.timers.unattended(review::due) {
            // The last thread to arm a timer did not go to sleep itself: a spare processor's
            // carrier, perhaps.
            runtime.poller.kick();
        } else if idle_for > PATIENCE {
            let has_work = || !runtime.all_idle() || safepoint::is_hot();
            runtime.monitor.sleep_unless(Deadline::NEVER, has_work);
            idle_for = 0;
            nothing_to_do = 0;
            monitor = Monitor::new(runtime);
            continue;
        }
        if monitor.look_after(&mut policy) {
            nothing_to_do = 0;
        } else {
            nothing_to_do += 1;
        }
    }
}

/// Puts one of the spare processors to work. Returns `false` if none is left.
fn add_spare(runtime: &'static Runtime) -> bool {
    let unused = |processor: &'static Processor| {
        let spare = processor.spare.as_ref().filter(|s| !s.is_in_use())?;
        Some((spare, processor))
    };
    let all = &runtime.processors.all;
    all.iter()
        .find_map(unused)
        .is_some_and(|(spare, processor)| {
            recorded::event(kinds::SPARE, processor.index as u64);
            spare.add(&runtime.spares_in_use, || start_spare(processor))
        })
}

/// Starts the carrier of a new spare processor. Returns `false` if there are no more stacks or OS
/// threads; then the program goes on without it.
fn start_spare(processor: &'static Processor) -> bool {
    // To start a thread takes memory in several places, and the program ends where that fails.
    // So check first; check again after reserving the stacks, which take address space. Stacks
    // leave more than this (`region`), so other threads that spawn meanwhile do not take it.
    if !has_room() {
        return false;
    }
    let runtime = processor.runtime();
    let class = runtime.settings.default_class;
    // For the slots that its cache may hold back: see `pool`. Kept for good.
    if runtime.stacks.reserve(class, CACHE).is_err() {
        return false;
    }
    if !has_room() {
        runtime.stacks.unreserve(class, CACHE);
        return false;
    }
    runtime.processors.use_up_to(processor.index);
    let started = super::start_one(processor).is_ok();
    if !started {
        runtime.stacks.unreserve(class, CACHE);
    }
    started
}

/// Returns whether there is memory for a new carrier.
fn has_room() -> bool {
    environment::probe_allocator(ROOM).is_ok()
}

/// The monitor's memory from tick to tick.
struct Monitor {
    runtime: &'static Runtime,
    /// Where the next look begins. Of all stuck processors with a queue, the one seen last is
    /// relieved: each in turn.
    first: usize,
    /// The time since which there have been more spare processors than stuck ones.
    surplus_since: Option<u64>,
    /// An idle carrier had been asked to search, and had not begun, at the last tick.
    requested: bool,
    /// The time of the last look.
    looked: u64,
}

/// The CPU time of the thread that keeps a processor.
#[derive(Default)]
pub(super) struct Standstill {
    /// The CPU time its holder had used when it was first seen still (0: not seen yet), and last.
    first_cpu: u64,
    last_cpu: u64,
    /// Its holder was found blocked, when it had used this CPU time, and has hardly run since.
    blocked: bool,
    blocked_cpu: u64,
}

/// The result of one look.
#[derive(Default)]
struct Look {
    /// A processor has not switched since the last look.
    still: bool,
    /// A thread waits in the queue of such a processor.
    waiting: bool,
    /// Processors that are held, and how many of them are stuck.
    held: usize,
    stuck: usize,
    /// Spare processors, without those that are on their way to rest.
    spares: usize,
    /// A spare processor that the monitor could let go.
    surplus: Option<&'static Spare>,
}

impl Standstill {
    /// Returns whether a processor that has been still for `still` ns is stuck. It is not if its
    /// holder just waits for a CPU.
    fn is_stuck(&mut self, holder: u32, still: u64, inquiries: &mut u32) -> bool {
        let cpu = os_thread::cpu_time(holder);
        let has_run = cpu != self.last_cpu;
        self.last_cpu = cpu;
        if self.first_cpu == 0 {
            self.first_cpu = cpu;
        }
        if still < STUCK_NS {
            return false;
        }
        if has_run == self.blocked && *inquiries > 0 {
            *inquiries -= 1;
            if os_thread::is_blocked(holder) {
                (self.blocked, self.blocked_cpu) = (true, cpu);
            }
        }
        self.blocked &= cpu.saturating_sub(self.blocked_cpu) < SHOWING_NS;
        // It was first seen still one tick late.
        self.blocked || cpu.saturating_sub(self.first_cpu) >= STUCK_NS - TICK_NS
    }

    /// Describes a processor that is stuck.
    fn episode(&self, processor: &Processor, holder: u32, still: u64) -> Episode {
        Episode {
            processor: processor.index,
            number: 0, // counted there
            ns: still,
            holder,
            tick: processor.observed_tick(),
            blocked: self.blocked,
            cpu: self.last_cpu.saturating_sub(self.first_cpu),
        }
    }
}

impl Monitor {
    fn new(runtime: &'static Runtime) -> Monitor {
        Monitor {
            runtime,
            first: 0,
            surplus_since: None,
            requested: false,
            looked: sys::now(),
        }
    }

    /// Runs one tick. Returns whether it had to repair something, or may have to soon.
    fn look_after(&mut self, policy: &mut Policy) -> bool {
        let runtime = self.runtime;
        runtime.stacks.watch();
        let now = sys::now();
        let step = now - self.looked;
        self.looked = now;
        let look = self.look(now, step, policy);
        let waiting = look.waiting
            || runtime.injector.len() > 0
            || runtime.preempted.any()
            || runtime.timers.overdue(TICK_NS);
        let (mut stepped_in, mut wanting) = (false, false);
        let requested = runtime.idle.is_requested();
        if runtime.idle.count() > 0 {
            if requested && self.requested {
                // The sleeper that was kicked a tick ago has not come. While the request stands,
                // no other sleeper is woken.
                runtime.poller.kick();
            }
            if waiting {
                runtime.notify();
                stepped_in = true;
            }
        } else if look.stuck > 0 && look.stuck == look.held {
            // With every processor stuck, no carrier looks for events either.
            let wanted = waiting || runtime.poller.pending();
            stepped_in = wanted && add_spare(runtime);
            wanting = wanted && !stepped_in;
        }
        runtime.stuck.note_wanting(wanting, step);
        runtime.stuck.end_rest();
        self.requested = requested;
        self.dismiss_surplus(&look, now);
        stepped_in || runtime.spares_in_use.count() > 0 || (waiting && look.still)
    }

    /// Looks at all processors, `step` ns after the last look.
    fn look(&mut self, now: u64, step: u64, policy: &mut Policy) -> Look {
        let mut look = Look::default();
        let mut inquiries = INQUIRIES;
        let all = self.runtime.processors.used();
        self.first = (self.first + 1) % all.len();
        for i in 0..all.len() {
            let processor = &all[(self.first + i) % all.len()];
            let spare = processor.spare.as_ref();
            let holder = processor.holder.load(Ordering::Relaxed); // Relaxed: read at each tick.
            // The first carrier of a spare processor may not have begun yet.
            let held = spare.map_or(holder != 0, Spare::is_in_use);
            let still = policy.observe(processor, now);
            if still > 0 && !processor.queue.is_empty() {
                look.waiting = true;
                self.runtime.processors.report_stuck(processor.index);
            }
            look.still |= still > 0;
            let standstill = &mut policy.watched[processor.index].standstill;
            let stuck = still > 0 && standstill.is_stuck(holder, still, &mut inquiries);
            // A thread that can be preempted does not keep its processor.
            let episode = stuck.then(|| standstill.episode(processor, holder, still));
            let unstoppable = |it: &Episode| it.blocked || policy.may_be_stuck(processor, now);
            let episode = episode.filter(unstoppable);
            let stuck = episode.is_some();
            let episode = episode.ok_or(processor.index);
            self.runtime.stuck.note(episode, step);
            let active = spare.is_some_and(Spare::is_active);
            look.held += usize::from(held);
            look.stuck += usize::from(stuck);
            look.spares += usize::from(active || (stuck && spare.is_some()));
            if active && !stuck {
                look.surplus = spare;
            }
        }
        look
    }

    /// Lets a spare processor go if there have been too many for a while.
    fn dismiss_surplus(&mut self, look: &Look, now: u64) {
        if look.spares <= look.stuck {
            self.surplus_since = None;
            return;
        }
        let since = *self.surplus_since.get_or_insert(now);
        if now - since >= SURPLUS_NS
            && let Some(spare) = look.surplus
        {
            spare.dismiss();
        }
    }
}
