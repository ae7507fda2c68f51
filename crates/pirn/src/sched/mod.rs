//! The scheduler: which virtual thread runs next, and on which carrier.
//!
//! To the layers above it is a trait with one method, [`Scheduler::schedule`], which is given a
//! [`Runnable`] whenever a thread becomes runnable; running it on any platform thread mounts it
//! there until it parks. The default scheduler, behind the same door, is work stealing:
//!
//! * [`processor`]: the right to run threads, with a queue of them ([`local_queue`]).
//! * [`injector`]: the queue for everything that comes from outside.
//! * [`carriers`]: the platform threads that run them.
//! * [`idle`]: how few of them are woken. [`monitor`]: what if that was too few; [`spare`]: what if
//!   all are stuck, as [`os_thread`] tells; [`stranded`]: saying so if nothing helps.
//! * [`driver`]: what they wait for when there is nothing to run.

pub(crate) mod carriers;
pub(crate) mod driver;
pub(crate) mod idle;
pub(crate) mod injector;
pub(crate) mod local_queue;
pub(crate) mod monitor;
mod os_thread;
pub(crate) mod processor;
mod runnable;
pub(crate) mod spare;
mod stranded;

pub(crate) use processor::Processor;
pub use runnable::{Runnable, Scheduler};
pub(crate) use runnable::{carrier_name, lend};

use crate::stack::{SizeClass, pool, region};
use crate::vthread::mount::After;
use crate::vthread::record::Phase;
use crate::vthread::{self, Core};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::io;

/// What the scheduler needs to know of the configuration.
pub(crate) struct Settings {
    pub(crate) parallelism: usize,
    /// Processors that may be added while all others are stuck.
    pub(crate) spares: usize,
    pub(crate) default_class: SizeClass,
    pub(crate) spin_ns: u64,
}

struct Shared {
    settings: Settings,
    /// The regular ones, then the spare ones.
    processors: Box<[Processor]>,
    /// How many of them have ever been used.
    used: AtomicUsize,
}

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(core::ptr::null_mut());

#[inline(always)]
fn shared() -> &'static Shared {
    // Acquire: pairs with the Release in `start`.
    // SAFETY: set before the first virtual thread; never freed.
    unsafe { &*SHARED.load(Ordering::Acquire) }
}

/// The processors that may have threads: the regular ones, and those spare ones that were ever
/// used.
#[inline]
pub(crate) fn processors() -> &'static [Processor] {
    let shared = shared();
    // Acquire: pairs with the Release in `use_processors_up_to`; whoever sees a processor's thread
    // has synchronised with its carrier, which was started or woken after that.
    &shared.processors[..shared.used.load(Ordering::Acquire)]
}

/// All processors there can ever be.
fn all_processors() -> &'static [Processor] {
    &shared().processors
}

/// Has [`processors`] include the one of this index. The monitor's alone.
fn use_processors_up_to(index: usize) {
    shared().used.fetch_max(index + 1, Ordering::Release); // Release: see `processors`.
}

/// The settings in force.
#[inline]
pub(crate) fn settings() -> &'static Settings {
    &shared().settings
}

/// The size class of stacks unless a builder says otherwise.
#[inline]
pub(crate) fn default_class() -> SizeClass {
    shared().settings.default_class
}

/// Starts the default scheduler. Once.
pub(crate) fn start(settings: Settings) -> io::Result<()> {
    let count = settings.parallelism;
    region::find_out();
    pool::set_surplus(settings.default_class, count);
    idle::prepare(count);
    let regular = (0..count).map(|i| Processor::new(i, None));
    let spares = (0..settings.spares).map(|i| Processor::new(count + i, Some(spare::Spare::new())));
    let processors = regular.chain(spares).collect();
    let shared = Box::into_raw(Box::new(Shared {
        settings,
        processors,
        used: AtomicUsize::new(count),
    }));
    SHARED.store(shared, Ordering::Release); // Release: pairs with the Acquire in `shared`.
    carriers::start()?;
    monitor::start()
}

/// Hands a thread that may run now to its scheduler. The caller owns the right to run it, and gives
/// it up.
#[inline]
pub(crate) fn make_runnable(thread: NonNull<Core>) {
    enqueue(vthread::carrier().and_then(|c| c.processor()), thread);
}

/// As [`make_runnable`], for callers that know which processor they hold.
#[inline]
pub(crate) fn enqueue(processor: Option<&'static Processor>, thread: NonNull<Core>) {
    // SAFETY: alive, since it has yet to run.
    let core = unsafe { thread.as_ref() };
    core.set_phase(Phase::Runnable);
    if core.scheduler().is_some() {
        return runnable::schedule_elsewhere(thread);
    }
    match processor {
        Some(processor) => {
            // SAFETY: our carrier holds the processor.
            unsafe { processor.enqueue(thread) };
            match processor.queue.len() {
                0 | 1 => {}
                2..=idle::FEW => idle::notify_of_few(),
                _ => idle::notify(),
            }
        }
        None => {
            injector::push(thread);
            idle::notify();
        }
    }
}

/// Lets other threads run: the running virtual thread goes to the back of its queue.
#[inline]
pub(crate) fn yield_now(core: &'static Core) {
    vthread::mount::suspend(core, After::Yield);
}

/// Reserves the stack of a thread about to be spawned.
#[inline]
pub(crate) fn reserve_stack(class: SizeClass) -> io::Result<()> {
    match vthread::carrier().and_then(|c| c.processor()) {
        // SAFETY: our carrier holds the processor.
        Some(processor) if class == default_class() => unsafe { processor.reserve() },
        _ => pool::reserve(class, 1),
    }
}
