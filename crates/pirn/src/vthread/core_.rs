//! What there is of a virtual thread.
//!
//! One [allocation](super::body) holds all: the [`Core`] (whatever does not depend on types), the
//! result, and until the thread starts its closure. Counted references keep it alive: the
//! [`JoinHandle`](crate::thread::JoinHandle), each [`Thread`](crate::thread::Thread), and one that
//! belongs to the thread itself and is dropped at its end.

use super::body::VTable;
use super::handshake::Handshake;
use super::join::JoinCell;
use super::permit::ParkPermit;
use super::wait_word::WaitWord;
use crate::continuation::Continuation;
use crate::sched::Scheduler;
use crate::stack::{SizeClass, Slot};
use crate::thread::scoped::ScopeData;
use core::cell::Cell as StdCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

/// The part of a virtual thread that does not depend on its closure.
#[repr(C)]
pub(crate) struct Core {
    references: AtomicUsize,
    vtable: &'static VTable,
    /// Exactly-once waking.
    pub(crate) handshake: Handshake,
    /// `park` and `unpark`.
    pub(crate) permit: ParkPermit,
    /// Its interruptible waits, and whether it is interrupted.
    pub(crate) wait: WaitWord,
    /// Stack, registers, TLS block.
    pub(crate) continuation: Continuation,
    /// The carrier it is mounted on; meaningful while mounted only, to itself and its carrier.
    pub(crate) carrier: StdCell<*const super::Carrier>,
    /// Link of the queue that owns it while it waits to run.
    pub(crate) next: StdCell<*const Core>,
    /// Its end, and who waits for that.
    pub(crate) join: JoinCell,
    /// Who runs it; none: the default scheduler.
    scheduler: Option<Arc<dyn Scheduler>>,
    name: Option<Box<str>>,
    id: u64,
    /// What it is doing, for people to read: a [`Phase`], and above it the carrier's number.
    phase: AtomicU64,
    class: SizeClass,
    /// Whether it has ended with a panic; written before its end is published.
    pub(crate) panicked: StdCell<bool>,
    /// Whether its handle is gone, so that nobody will ask for the result.
    pub(crate) detached: AtomicBool,
    /// The [`thread::scope`](crate::thread::scope) that waits for it.
    pub(crate) scope: Option<Arc<ScopeData>>,
}

/// What a thread is doing: shown by `Debug` and by dumps, never used to decide anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Phase {
    New,
    Runnable,
    Running,
    Waiting,
    Terminated,
}

/// What the builder decides.
pub(crate) struct Settings {
    pub(crate) name: Option<Box<str>>,
    pub(crate) class: SizeClass,
    pub(crate) scheduler: Option<Arc<dyn Scheduler>>,
    pub(crate) scope: Option<Arc<ScopeData>>,
}

// SAFETY: the cells are touched by one thread at a time: the mounted thread itself, its carrier, or
// whoever holds the right to run it; the handshake passes them on.
unsafe impl Sync for Core {}
// SAFETY: as above.
unsafe impl Send for Core {}

/// How many ids a processor takes at once.
const ID_BLOCK: u64 = 64;

/// Ids that have been taken and not yet been given out.
pub(crate) struct Ids {
    next: StdCell<u64>,
    end: StdCell<u64>,
}

impl Ids {
    /// None.
    pub(crate) const fn new() -> Ids {
        Ids {
            next: StdCell::new(0),
            end: StdCell::new(0),
        }
    }

    /// The next one.
    #[inline]
    fn take(&self) -> u64 {
        let mut id = self.next.get();
        if id == self.end.get() {
            id = take_ids(ID_BLOCK);
            self.end.set(id + ID_BLOCK);
        }
        self.next.set(id + 1);
        id
    }
}

fn take_ids(count: u64) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed: only uniqueness matters.
    NEXT.fetch_add(count, Ordering::Relaxed)
}

/// An id that no other thread or scope of this process has, or will have. Small enough to read:
/// processors take blocks of them, because one counter for all would be where all carriers meet.
#[inline]
pub(crate) fn next_id() -> u64 {
    match super::carrier().and_then(|carrier| carrier.processor()) {
        // SAFETY: this carrier holds the processor.
        Some(processor) => unsafe { processor.ids() }.take(),
        None => take_ids(1),
    }
}

impl Core {
    /// Makes one in its place: that of a thread that has not started, with two references.
    ///
    /// Field by field, because a thread is spawned so often that making it elsewhere and copying it
    /// shows.
    ///
    /// # Safety
    /// `place` is valid for writes.
    #[inline]
    pub(super) unsafe fn write(place: *mut Core, settings: Settings, vtable: &'static VTable) {
        macro_rules! fields {
            ($($field:ident: $value:expr,)*) => {{
                // SAFETY: the caller's contract.
                unsafe { $((&raw mut (*place).$field).write($value);)* }
                // All fields, or this does not compile.
                let _ = |core: Core| { let Core { $($field: _),* } = core; };
            }};
        }
        fields! {
            references: AtomicUsize::new(2),
            vtable: vtable,
            handshake: Handshake::new(),
            permit: ParkPermit::new(),
            wait: WaitWord::idle(),
            continuation: Continuation::new(),
            carrier: StdCell::new(core::ptr::null()),
            next: StdCell::new(core::ptr::null()),
            join: JoinCell::new(),
            scheduler: settings.scheduler,
            name: settings.name,
            id: next_id(),
            phase: AtomicU64::new(Phase::New as u64),
            class: settings.class,
            panicked: StdCell::new(false),
            detached: AtomicBool::new(false),
            scope: settings.scope,
        }
    }

    /// Its id.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Its name, if it was given one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Its stack, once it has run.
    pub(crate) fn slot(&self) -> Option<Slot> {
        self.continuation.slot()
    }

    /// The class its stack was reserved in.
    pub(crate) fn class(&self) -> SizeClass {
        self.class
    }

    /// The scheduler it was given; none means the default one.
    pub(crate) fn scheduler(&self) -> Option<&Arc<dyn Scheduler>> {
        self.scheduler.as_ref()
    }

    pub(crate) fn vtable(&self) -> &'static VTable {
        self.vtable
    }

    /// What it is doing.
    pub(crate) fn phase(&self) -> Phase {
        // Relaxed: for people to read.
        match self.phase.load(Ordering::Relaxed) & 0xff {
            0 => Phase::New,
            1 => Phase::Runnable,
            2 => Phase::Running,
            3 => Phase::Waiting,
            _ => Phase::Terminated,
        }
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u64, Ordering::Relaxed); // Relaxed: as above.
    }

    /// It is running, on the carrier with this number.
    pub(crate) fn set_running(&self, carrier: u32) {
        let value = Phase::Running as u64 | u64::from(carrier) << 8;
        self.phase.store(value, Ordering::Relaxed); // Relaxed: as above.
    }

    /// The number of the carrier it is mounted on, or was a moment ago.
    pub(crate) fn carrier_number(&self) -> Option<u32> {
        let value = self.phase.load(Ordering::Relaxed); // Relaxed: as above.
        (value & 0xff == Phase::Running as u64).then_some((value >> 8) as u32)
    }

    /// Takes another reference.
    pub(crate) fn to_ref(&self) -> ThreadRef {
        // Relaxed: the caller has access, so a reference exists and cannot go away meanwhile.
        self.references.fetch_add(1, Ordering::Relaxed);
        ThreadRef(NonNull::from(self))
    }

    /// Gives up a reference without a [`ThreadRef`]: the thread's own, at its end.
    ///
    /// # Safety
    /// The caller owns a reference that nobody else gives up.
    pub(crate) unsafe fn release(this: NonNull<Core>) {
        drop(ThreadRef(this));
    }
}

/// A counted reference to a virtual thread.
pub(crate) struct ThreadRef(NonNull<Core>);

// SAFETY: `Core` is Sync, and the last reference may be dropped anywhere.
unsafe impl Send for ThreadRef {}
// SAFETY: as above.
unsafe impl Sync for ThreadRef {}

impl ThreadRef {
    /// Takes over one of the references of a new core.
    ///
    /// # Safety
    /// The caller owns that reference.
    pub(super) unsafe fn from_new(core: NonNull<Core>) -> ThreadRef {
        ThreadRef(core)
    }

    /// The thread, for the queues.
    pub(crate) fn as_ptr(&self) -> NonNull<Core> {
        self.0
    }
}

impl core::ops::Deref for ThreadRef {
    type Target = Core;
    fn deref(&self) -> &Core {
        // SAFETY: counted.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for ThreadRef {
    fn clone(&self) -> ThreadRef {
        self.to_ref()
    }
}

impl Drop for ThreadRef {
    #[inline]
    fn drop(&mut self) {
        // Acquire: pairs with the Release of those who have given theirs up. With one reference
        // left, ours, nobody can make another: a look is enough, and cheaper.
        let last = self.references.load(Ordering::Acquire) == 1;
        // Release, then Acquire by the last one: all uses happen before the freeing, as in `Arc`.
        if last || self.references.fetch_sub(1, Ordering::Release) == 1 {
            core::sync::atomic::fence(Ordering::Acquire);
            // SAFETY: the last reference.
            unsafe { self.vtable.free(self.0) };
        }
    }
}
