//! The scheduler: which virtual thread runs next, and on which carrier.
//!
//! The scheduler gets the right to run a thread ([`Ready`]) whenever one becomes runnable. It
//! passes a thread with a scheduler of the program on to that. For all others it steals work:
//!
//! * [`processor`]: the right to run threads, with a queue of them ([`local_queue`]).
//! * [`injector`]: the queue for everything that comes from outside ([`ready_queue`]).
//! * [`carriers`]: the platform threads that run them; [`search`]: where they look for work.
//! * [`idle`]: how few of them are woken. [`monitor`]: repairs what a missing wake left undone
//!   ([`doze`]: its sleep). [`spare`]: stands in when all are stuck, as [`os_thread`] tells.
//!   [`stuck`]: what it has found, for those who explain it; [`alarm`]: wakes them.
//! * [`preempt`]: taking threads that compute off their processors; [`slices`]: when, as the
//!   monitor sees it; [`turn`], [`turns`]: who had a turn and who gets one.
//! * [`elsewhere`]: running threads on platform threads that are no carriers.
//! * [`counters`], [`latency`]: what is counted and timed.
//! * `standing`: having a carrier stand still while its stack is read, by a request (`sample`).
//! * [`errands`]: what signal handlers want done.
//! * [`cold`]: paging out the stacks of threads that have been parked for long.
//!
//! They are parts of a [`Runtime`], through which they reach each other.

mod alarm;
pub(crate) mod carriers;
pub mod cold;
pub mod counters;
pub(crate) mod doze;
mod elsewhere;
pub mod errands;
pub(crate) mod idle;
pub(crate) mod injector;
pub mod latency;
pub(crate) mod local_queue;
pub(crate) mod monitor;
pub mod os_thread;
pub mod preempt;
pub(crate) mod processor;
pub mod ready_queue;
#[cfg(feature = "dump")]
pub mod sample;
mod search;
mod slices;
pub mod spare;
#[cfg(feature = "dump")]
pub mod standing;
pub mod stuck;
mod turn;
pub(crate) mod turns;

pub use elsewhere::{abandon, carrier_name, keep_platform_threads, lend, mount_here};
pub(crate) use preempt::put_aside;
pub use processor::Processor;
pub(crate) use processor::{Acquired, Holder};

use crate::mark::{self, Raised};
use crate::recorder;
use crate::runtime::Runtime;
use crate::stack::SizeClass;
use crate::stack::shortage::Shortage;
use crate::sys;
use crate::vthread::mount::After;
use crate::vthread::record::Phase;
use crate::vthread::{self, Current, Ready};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};
use counters::Cause;
use spare::Spare;
use std::io;

/// All processors of a runtime.
pub struct Processors {
    /// The regular ones, then the spare ones.
    all: Box<[Processor]>,
    /// The number of them that have ever been used.
    used: AtomicUsize,
    /// One more than the index of the processor that the monitor last found stuck in one thread
    /// while others wait in its queue; 0: none.
    stuck: AtomicUsize,
}

impl Processors {
    /// Makes `regular` and `spares` processors.
    ///
    /// # Safety
    /// `runtime` is valid before anybody else sees the processors, and for ever.
    pub(crate) unsafe fn new(
        runtime: NonNull<Runtime>,
        regular: usize,
        spares: usize,
    ) -> Processors {
        let make = |index| {
            let spare = (index >= regular).then(Spare::new);
            // SAFETY: the caller's contract.
            unsafe { Processor::new(index, runtime, spare) }
        };
        Processors {
            all: (0..regular + spares).map(make).collect(),
            used: AtomicUsize::new(regular),
            stuck: AtomicUsize::new(0),
        }
    }

    /// Returns the processors that may have threads: the regular ones, and the spare ones that were
    /// ever used.
    #[inline]
    pub fn used(&self) -> &[Processor] {
        // Acquire: pairs with the Release in `use_up_to`. A caller that sees a processor's thread
        // has synchronised with its carrier, which was started or woken after that.
        &self.all[..self.used.load(Ordering::Acquire)]
    }

    /// Returns the number of processors that there can ever be.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the number of switches on all processors, which wraps.
    pub fn switches(&self) -> u32 {
        let ticks = self.used().iter().map(|p| p.tick.load(Ordering::Relaxed)); // Relaxed: a hint.
        ticks.fold(0, u32::wrapping_add)
    }

    /// Makes [`used`](Self::used) include the processor of this index. The monitor's alone.
    fn use_up_to(&self, index: usize) {
        self.used.fetch_max(index + 1, Ordering::Release); // Release: see `used`.
    }

    /// Asks the next carrier that looks for work to relieve this processor, even of a single
    /// thread.
    fn report_stuck(&self, index: usize) {
        self.stuck.store(index + 1, Ordering::Relaxed); // Relaxed: a hint; the kick orders.
    }

    /// Takes the report of a stuck processor, if there is one.
    fn take_stuck(&self) -> Option<&Processor> {
        if self.stuck.load(Ordering::Relaxed) == 0 {
            return None; // Relaxed: as in `report_stuck`.
        }
        let index = self.stuck.swap(0, Ordering::Relaxed).checked_sub(1)?;
        self.used().get(index)
    }
}

impl Runtime {
    /// Starts the carriers and the monitor.
    pub fn start_scheduler(&'static self) -> io::Result<()> {
        let regular = self.processors.used();
        regular.iter().try_for_each(carriers::start_one)?;
        monitor::start(self)
    }

    /// Takes an idle processor for the calling platform thread.
    fn acquire_processor(&self) -> Option<Acquired> {
        // SAFETY: off the idle list, so this platform thread's alone.
        let processor = unsafe { Acquired::new(self.idle.acquire()?) };
        self.doze.stir();
        Some(processor)
    }

    /// Puts a processor on the idle list. Returns whether there is work after all.
    fn release_processor(&self, processor: Acquired) -> bool {
        let processor = processor.end();
        self.idle.release(processor, || self.work_in_queues())
    }

    /// Puts a borrowed processor back; the caller is not going to look for work.
    fn give_back_processor(&self, processor: Acquired) {
        if self.release_processor(processor) {
            if self.idle.is_requested() {
                self.poller.kick(); // The request may have woken a carrier that found no processor.
            } else {
                self.notify();
            }
        }
    }

    /// Returns whether nobody holds a processor.
    pub fn all_idle(&self) -> bool {
        self.idle.count() == self.settings.parallelism && self.spares_in_use.count() == 0
    }

    /// Returns whether a queue has threads that a searching carrier would take.
    fn work_in_queues(&self) -> bool {
        let used = self.processors.used();
        self.injector.len() > 0
            || self.turns.any()
            || used.iter().any(|p| p.queue.len() > idle::FEW)
    }

    /// Wakes a carrier, if one is needed, after a thread was put where an idle carrier could find
    /// it.
    #[inline]
    fn notify(&self) {
        self.idle.notify(|| self.poller.kick());
    }

    /// Ends a search: it has found a thread, or gives up.
    fn stop_searching(&self, found: bool) {
        let kick = || self.poller.kick();
        self.idle
            .stop_searching(found, || self.work_in_queues(), kick);
    }

    /// Withdraws a request to search: the calling carrier, which is awake, has taken the kick that
    /// was meant for a sleeping one.
    pub(crate) fn decline_search(&self) {
        let kick = || self.poller.kick();
        self.idle.decline(|| self.work_in_queues(), kick);
    }

    /// Reserves a stack for a thread that the calling thread, which belongs to this
    /// [runtime](crate::runtime::current), is about to spawn.
    #[inline(always)]
    pub fn reserve_stack(&self, class: SizeClass) -> Result<(), Shortage> {
        let mark = Raised::new();
        match vthread::carrier(&mark).and_then(|c| c.processor()) {
            Some(processor) if class == self.settings.default_class => processor.reserve(),
            _ => self.stacks.reserve(class, 1),
        }
    }
}

/// Hands a thread that was parked, and has been woken, to its scheduler.
#[inline(never)]
pub(crate) fn make_runnable(thread: Ready) {
    hand_on(thread, Cause::Wake);
}

/// Hands a new thread to its scheduler.
#[inline]
pub fn start(thread: Ready) {
    if recorder::is_on() {
        vthread::recorded::spawned(thread.core());
    }
    hand_on(thread, Cause::Start);
}

#[inline(always)]
fn hand_on(thread: Ready, cause: Cause) {
    if mark::in_handler() {
        return post(thread, cause);
    }
    let mark = Raised::new();
    let processor = vthread::carrier(&mark).and_then(|c| c.processor());
    enqueue_because(processor, thread, cause);
}

/// Does the same in a signal handler, which may have interrupted a change of a queue: the next
/// carrier that looks for events hands the thread on.
#[cold]
fn post(thread: Ready, cause: Cause) {
    let runtime = thread.core().runtime();
    runtime.outside.runnable_shared(cause);
    runtime.injector.post(thread);
    runtime.poller.kick();
}

/// Hands on a thread that a handler has [posted](post).
pub(crate) fn enqueue_posted(thread: Ready) {
    let mark = Raised::new();
    enqueue(vthread::carrier(&mark).and_then(|c| c.processor()), thread);
}

/// Puts a thread that gives way into the queue of the processor that the caller holds, or hands it
/// to the scheduler that it has.
#[inline]
pub(crate) fn enqueue(processor: Option<Holder<'_>>, thread: Ready) {
    enqueue_because(processor, thread, Cause::Yield);
}

/// Does the same with a thread that was woken before it was off its stack.
///
/// Rare, and never inlined, so that what calls it at each switch is.
#[cold]
#[inline(never)]
pub(crate) fn enqueue_woken(processor: Option<Holder<'_>>, thread: Ready) {
    enqueue_because(processor, thread, Cause::Wake);
}

#[inline(always)]
fn enqueue_because(processor: Option<Holder<'_>>, thread: Ready, cause: Cause) {
    thread.core().set_phase(Phase::Runnable);
    match processor {
        Some(processor) if thread.core().is_queued_in(processor.runtime()) => {
            if processor.counters().runnable(cause) {
                time(&thread);
            }
            let len = processor.enqueue(thread);
            let runtime = processor.runtime();
            match len {
                0 | 1 => {}
                2..=idle::FEW => runtime.idle.notify_of_few(|| runtime.poller.kick()),
                _ => runtime.notify(),
            }
        }
        _ => enqueue_elsewhere(thread, cause),
    }
}

/// Runs a thread that has been woken in place of the running one, which goes to the back of its
/// queue. The caller's carrier holds `processor`, and the mark is up.
#[cold]
pub(crate) fn run_in_place(processor: Holder<'_>, running: Current, woken: Ready) {
    if processor.counters().runnable(Cause::Wake) {
        time(&woken);
    }
    vthread::mount::yield_to(running, woken);
}

/// Notes that a thread has become runnable now.
#[cold]
fn time(thread: &Ready) {
    thread.core().at_mount.time(sys::now());
}

/// Enqueues a thread that cannot go to the calling thread's processor: it has a scheduler of its
/// own, or another runtime, or there is no such processor.
#[inline(never)]
fn enqueue_elsewhere(thread: Ready, cause: Cause) {
    if thread.core().runtime().outside.runnable_shared(cause) {
        time(&thread);
    }
    // Cloned, because the thread may have ended before the call of the scheduler returns.
    if let Some(scheduler) = thread.core().scheduler().cloned() {
        return elsewhere::dispatch(scheduler, thread);
    }
    let runtime = thread.core().runtime();
    let mark = Raised::new();
    let urgently =
        |carrier: &vthread::Carrier| carrier.is_urgent() && ptr::eq(carrier.runtime(), runtime);
    match vthread::carrier(&mark).is_some_and(urgently) {
        true => runtime.turns.push_urgent(thread),
        false => runtime.injector.push_from_outside(thread),
    }
    runtime.notify();
}

/// Lets other threads run: the running virtual thread goes to the back of its queue.
///
/// A safe point: a thread that yields in a loop is hardly ever found in code in which it can be
/// interrupted. One that was alone on its carrier was not made to run a signal's handler in 30 s.
#[inline]
pub fn yield_now(core: Current) {
    vthread::mount::suspend(core, After::Yield);
    if core.wait.is_summoned() {
        vthread::summons::attend();
    }
}
