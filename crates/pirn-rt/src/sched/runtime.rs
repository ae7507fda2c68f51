//! The runtime: everything that runs virtual threads, as one value.
//!
//! Its parts are made in the order of the layers, from the bottom; each is a struct in its own
//! file. Processors, carriers and virtual threads know their runtime, so hot paths reach it from
//! there. Only entries from outside read the static ([`get`]): C functions on platform threads, and
//! the first spawn. A process has one runtime; tests make more.
//!
//! State of the process stays global:
//!
//! * Interposed functions and handlers, the TLS template, malloc's words, `pthread` keys: a process
//!   has one C library.
//! * Ids, the maps from addresses to slots, from slots to threads and from platform threads to what
//!   they carry (`stack/region.rs`, `vthread/table.rs`, `sched/carrier.rs`): an id or an
//!   address means one thread, whichever runtime it belongs to, also to signal handlers and to
//!   debuggers.
//! * The table of descriptors, and their review (`blocking/fds/review.rs`), which goes through it:
//!   numbers of descriptors are the process's.
//! * The parking lot: platform threads and the threads of all runtimes share locks, and the lot is
//!   used before there is a runtime.
//! * The retries (`blocking/retry.rs`) for locks on files, FIFOs and Unix sockets: a call by any
//!   thread of the process gives those that wait a chance.
//! * The depot of the magazines (`sched/magazines.rs`), and the pair for threads without a
//!   processor: the last reference to a thread may go on a platform thread, which knows no runtime.
//!   Each processor has magazines of its own.
//! * The recorder (`recorder/`): platform threads and signal handlers write events, too, and a
//!   recording is one of the process. Each switch looks at its byte: one load from a fixed address.
//! * The hooks of safe points (`sched/safepoint.rs`), and the time until which the monitor helps
//!   them: the hooks are the same functions for all threads, and a signal handler may set the time.
//! * Deferred requests (`sched/deferred.rs`), the inspection server (`pirn-observe/server/`), the
//!   request to stop (`sched/current_stack/`): signal handlers leave or answer them, and a process
//!   has one socket.
//! * The tree of scopes (`scope/tree.rs`): an owner may be a platform thread.

use super::carrier::carrier;
use super::counters::Counters;
use super::idle::{FEW, Idle};
use super::injector::Injector;
use super::preempt::queues::Preempted;
use super::processor::{Acquired, Processor, Processors};
use super::simulation::Simulator;
use super::spare::InUse;
use super::stuck::Stuck;
use crate::no_suspend::NoSuspend;
use crate::reactor::epoll::Poller;
use crate::reactor::jobs::Jobs;
use crate::reactor::timers::Timers;
use crate::stack::SizeClass;
use crate::stack::pool::Stacks;
use crate::stack::shortage::Shortage;
use crate::sys::Sleeper;
use crate::vthread::Core;
use crate::vthread::record::Home;
use core::mem::offset_of;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::io;

/// The part of the configuration that a runtime uses.
pub struct RuntimeSettings {
    pub parallelism: usize,
    /// Processors that may be added while all others are stuck.
    pub spares: usize,
    /// The size class of stacks unless a builder says otherwise.
    pub default_class: SizeClass,
    /// How long a carrier searches before it sleeps.
    pub spin_ns: u64,
    /// The largest number of pool threads.
    pub max_blocking_threads: usize,
    /// How long a thread may compute while others wait; 0: for ever.
    pub slice_ns: u64,
    /// What decides in the scheduler's place. Then `parallelism` is 1, and `spares` and `slice_ns`
    /// are 0.
    pub simulator: Option<&'static dyn Simulator>,
}

/// See the module's documentation.
pub struct Runtime {
    pub settings: RuntimeSettings,
    pub stacks: Stacks,
    pub injector: Injector,
    pub preempted: Preempted,
    pub idle: Idle<Processor>,
    /// The sleep of the monitor while no carrier holds a processor.
    pub(crate) monitor: Sleeper,
    pub spares_in_use: InUse,
    pub stuck: Stuck,
    pub processors: Processors,
    pub timers: Timers,
    pub poller: Poller,
    /// The calls for the pool of platform threads.
    pub pool: Jobs,
    /// What has been counted outside of the processors.
    pub(crate) outside: Counters,
}

impl Runtime {
    /// Makes a runtime. [`carriers::start`](crate::carriers::start) starts its carriers.
    ///
    /// # Errors
    /// If the kernel refuses an epoll instance.
    pub fn new(settings: RuntimeSettings) -> io::Result<&'static Runtime> {
        let poller = Poller::new()
            .map_err(|text| io::Error::other(format!("pirn cannot wait for events: {text}")))?;
        let place = Box::leak(Box::new_uninit());
        let this: NonNull<Runtime> = NonNull::from(&mut *place).cast();
        let RuntimeSettings {
            parallelism,
            spares,
            ..
        } = settings;
        Ok(place.write(Runtime {
            stacks: Stacks::new(settings.default_class, parallelism),
            injector: Injector::new(),
            preempted: Preempted::new(settings.slice_ns),
            idle: Idle::new(parallelism),
            monitor: Sleeper::new(),
            spares_in_use: InUse::new(),
            stuck: Stuck::new(parallelism + spares),
            // SAFETY: the runtime is written here, before another thread knows its address, and
            // never freed.
            processors: unsafe { Processors::new(this, parallelism, spares) },
            timers: Timers::new(parallelism),
            poller,
            pool: Jobs::new(settings.max_blocking_threads, parallelism),
            outside: Counters::default(),
            settings,
        }))
    }

    /// Returns its address, for the records of its threads.
    #[inline]
    pub fn home(&'static self) -> Home {
        match self.settings.simulator {
            None => self.queues(),
            Some(_) => self.queues().elsewhere(),
        }
    }

    /// Returns the home of the threads that wait in its processors' queues.
    #[inline(always)]
    pub(crate) fn queues(&'static self) -> Home {
        // SAFETY: the type of runtimes.
        unsafe { Home::new(self) }
    }

    /// Returns the runtime that a thread belongs to.
    #[inline]
    pub fn of(thread: &Core) -> &'static Runtime {
        // SAFETY: the type of runtimes: only `home` makes a `Home`.
        unsafe { thread.home().runtime() }
    }

    /// Takes an idle processor for the calling platform thread.
    pub(crate) fn acquire_processor(&self) -> Option<Acquired> {
        // SAFETY: off the idle list, so this platform thread's alone.
        let processor = unsafe { Acquired::new(self.idle.acquire()?) };
        self.monitor.wake();
        Some(processor)
    }

    /// Puts a processor on the idle list. Returns whether there is work after all.
    pub(crate) fn release_processor(&self, processor: Acquired) -> bool {
        let processor = processor.end();
        self.idle.release(processor, || self.work_in_queues())
    }

    /// Puts a borrowed processor back; the caller is not going to look for work.
    pub(crate) fn give_back_processor(&self, processor: Acquired) {
        if self.release_processor(processor) {
            if self.idle.is_requested() {
                self.poller.kick(); // The request may have woken a carrier that found no processor.
            } else {
                self.notify();
            }
        }
    }

    /// Returns whether no platform thread holds a processor.
    pub fn all_idle(&self) -> bool {
        self.idle.count() == self.settings.parallelism && self.spares_in_use.count() == 0
    }

    /// Returns whether a queue has threads that a searching carrier would take.
    pub(crate) fn work_in_queues(&self) -> bool {
        let used = self.processors.used();
        self.injector.len() > 0 || self.preempted.any() || used.iter().any(|p| p.queue.len() > FEW)
    }

    /// Returns the number of threads in the queues.
    pub fn runnable(&self) -> usize {
        let own = self.processors.used().iter().map(|p| p.queue.len());
        own.sum::<usize>() + self.injector.len() + self.preempted.len()
    }

    /// Wakes a carrier, if one is needed, after a thread was put where an idle carrier could find
    /// it.
    #[inline]
    pub(crate) fn notify(&self) {
        self.idle.notify(|| self.poller.kick());
    }

    /// Ends a search: it has found a thread, or gives up.
    pub(crate) fn stop_searching(&self, found: bool) {
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
    /// [runtime](current), is about to spawn.
    #[inline(always)]
    pub fn reserve_stack(&self, class: SizeClass) -> Result<(), Shortage> {
        let section = NoSuspend::new();
        match carrier(&section).and_then(|c| c.processor()) {
            Some(processor) if class == self.settings.default_class => processor.reserve(),
            _ => self.stacks.reserve(class, 1),
        }
    }
}

/// The runtime of the process, once it has started, and until a fork.
static RUNTIME: AtomicPtr<Runtime> = AtomicPtr::new(ptr::null_mut());
/// Whether this is the child of a fork, and has no runtime of its own.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Where readers outside of the process find what.
pub const LAYOUT: [(&str, usize); 1] = {
    let settings = offset_of!(Runtime, settings);
    let parallelism = offset_of!(RuntimeSettings, parallelism);
    [("runtime.parallelism", settings + parallelism)]
};

/// Returns where the address of the runtime is, for readers outside of the process.
pub const fn place() -> *const () {
    (&raw const RUNTIME).cast()
}

/// Returns the runtime of the process, if it has started.
#[inline]
pub fn get() -> Option<&'static Runtime> {
    // Acquire: pairs with the Release in `publish`.
    // SAFETY: a runtime is never freed.
    unsafe { RUNTIME.load(Ordering::Acquire).as_ref() }
}

/// Returns the runtime that the calling thread belongs to, or the process's if it has none.
#[inline]
pub fn current() -> Option<&'static Runtime> {
    match carrier(&NoSuspend::new()) {
        Some(carrier) => Some(carrier.runtime()),
        None => get(),
    }
}

unsafe extern "Rust" {
    /// Starts the process's runtime. The crate above defines it, which has the layers above.
    safe fn pirn_start_runtime() -> io::Result<&'static Runtime>;
}

/// Returns the runtime for threads that the calling thread spawns. Starts the process's runtime if
/// it has not been started.
///
/// # Errors
/// The runtime could not start. A bad setting can be corrected and retried; any other failure is
/// final.
#[inline]
pub fn ensure_started() -> io::Result<&'static Runtime> {
    match current() {
        Some(runtime) => Ok(runtime),
        None => pirn_start_runtime(),
    }
}

/// Makes `runtime`, which has started, the process's runtime.
pub fn publish(runtime: &'static Runtime) {
    // Release: pairs with the Acquire in `get`: all that the start has done is visible.
    RUNTIME.store(ptr::from_ref(runtime).cast_mut(), Ordering::Release);
}

/// Returns whether there can be virtual threads.
#[inline]
pub fn is_started() -> bool {
    !RUNTIME.load(Ordering::Acquire).is_null() // Acquire: as in `get`.
}

/// Returns whether this is the child of a fork that has no runtime of its own: there are no virtual
/// threads.
pub fn has_forked() -> bool {
    FORKED.load(Ordering::Relaxed) // Relaxed: set while there is one thread only; see `restart`.
}

/// Notes that the child of a fork is about to have a runtime of its own.
pub fn has_begun_anew() {
    FORKED.store(false, Ordering::Relaxed); // Relaxed: published with the runtime.
}

/// Notes that the process, the child of a fork, has no runtime any more.
pub(crate) fn stop() {
    // Relaxed, both: there is one thread only.
    FORKED.store(true, Ordering::Relaxed);
    RUNTIME.store(ptr::null_mut(), Ordering::Relaxed);
}
