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
//!   they carry (`stack/region.rs`, `vthread/table.rs`, `vthread/table.rs`): an id or an
//!   address means one thread, whichever runtime it belongs to, also to signal handlers and to
//!   debuggers.
//! * The table of descriptors, and their review (`blocking/fds/review.rs`), which goes through it:
//!   numbers of descriptors are the process's.
//! * The parking lot: platform threads and the threads of all runtimes share locks, and the lot is
//!   used before there is a runtime.
//! * The retries (`blocking/retry.rs`) for locks on files, FIFOs and Unix sockets: a call by any
//!   thread of the process gives those that wait a chance.
//! * The depot of the magazines (`vthread/magazines.rs`), and the pair for threads without a
//!   processor: the last reference to a thread may go on a platform thread, which knows no runtime.
//!   Each processor has magazines of its own.
//! * The recorder (`recorder/`): platform threads and signal handlers write events, too, and a
//!   recording is one of the process. Each switch looks at its byte: one load from a fixed address.
//! * The hooks of summons (`vthread/summons.rs`), and the time until which the monitor helps them:
//!   the hooks are the same functions for all threads, and a signal handler may set the time.
//! * Errands (`sched/errands.rs`), the inspection server (`pirn-observe/server/`), the request to
//!   stand still (`sched/standing.rs`): signal handlers leave or answer them, and a process has one
//!   socket.
//! * The tree of scopes (`scope/tree.rs`): an owner may be a platform thread.

mod attempt;
pub mod process;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use attempt::{FAILURE, STARTING};

use crate::blocking::fds::epoll::Poller;
use crate::blocking::pool::Pool;
use crate::blocking::timer::Timers;
use crate::mark::Raised;
use crate::recorder;
use crate::sched::counters::Counters;
use crate::sched::doze::Doze;
use crate::sched::idle::Idle;
use crate::sched::injector::Injector;
use crate::sched::spare::InUse;
use crate::sched::stuck::Stuck;
use crate::sched::turns::Turns;
use crate::sched::{Processor, Processors, os_thread};
use crate::stack::SizeClass;
use crate::stack::pool::Stacks;
use crate::vthread;
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
}

/// See the module's documentation.
pub struct Runtime {
    pub settings: RuntimeSettings,
    pub stacks: Stacks,
    pub injector: Injector,
    pub turns: Turns,
    pub idle: Idle<Processor>,
    pub(crate) doze: Doze,
    pub spares_in_use: InUse,
    pub stuck: Stuck,
    pub processors: Processors,
    pub timers: Timers,
    pub poller: Poller,
    pub pool: Pool,
    /// What has been counted outside of the processors.
    pub(crate) outside: Counters,
}

impl Runtime {
    /// Makes a runtime. [`start_scheduler`](Self::start_scheduler) starts its carriers.
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
            turns: Turns::new(settings.slice_ns),
            idle: Idle::new(parallelism),
            doze: Doze::new(),
            spares_in_use: InUse::new(),
            stuck: Stuck::new(parallelism + spares),
            // SAFETY: the runtime is written here, before anybody else knows its address, and never
            // freed.
            processors: unsafe { Processors::new(this, parallelism, spares) },
            timers: Timers::new(parallelism),
            poller,
            pool: Pool::new(settings.max_blocking_threads, parallelism),
            outside: Counters::default(),
            settings,
        }))
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
    match vthread::carrier(&Raised::new()) {
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

/// Takes the runtime out of service in the child of a fork. The carriers exist only in the parent,
/// and threads that were not forked may hold locks, so nothing touches it again.
pub fn stop() {
    // Relaxed: there is one thread only.
    FORKED.store(true, Ordering::Relaxed);
    recorder::stop();
    os_thread::after_fork();
    if let Some(runtime) = get() {
        // Now, as long as nobody can have closed them, and got their numbers for others.
        runtime.poller.close_in_child();
    }
    // SAFETY: in the child.
    unsafe { attempt::after_fork() };
    RUNTIME.store(ptr::null_mut(), Ordering::Relaxed); // Relaxed: as above.
}
