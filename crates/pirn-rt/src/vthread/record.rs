//! The record of a virtual thread.
//!
//! One [allocation](super::body) holds everything: the [`Core`], which does not depend on types,
//! and the body, which does. [Counted references](super::ThreadRef) keep it alive: that of the join
//! handle, one per `Thread`, and one that belongs to the thread itself and is released at its end.

use super::Dispatch;
use super::awaited::Awaits;
use super::body::{VTable, write_fields};
use super::identity;
use super::signals::Signals;
use super::state::AtMount;
use super::state::Handshake;
use super::state::JoinCell;
use super::state::ParkPermit;
use super::wait_word::WaitWord;
use crate::arch::{self, FloatControls};
use crate::continuation::Continuation;
use crate::runtime::Runtime;
use crate::stack::{SizeClass, Slot};
use core::cell::Cell;
use core::mem::offset_of;
use core::panic::Location;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

/// The part of a virtual thread that does not depend on its closure.
#[repr(C)]
pub struct Core {
    /// The number of [`ThreadRef`](super::ThreadRef)s, plus the thread's own reference.
    pub(super) references: AtomicUsize,
    vtable: &'static VTable,
    /// Exactly-once waking.
    pub(crate) handshake: Handshake,
    /// `park` and `unpark`.
    pub permit: ParkPermit,
    /// Its interruptible waits, and whether it has been interrupted.
    pub wait: WaitWord,
    /// What the next mount has to do besides. In the cache line that each mount reads.
    pub at_mount: AtMount,
    /// The link of the queue that owns it while it waits to run.
    pub(crate) next: Cell<*const Core>,
    /// Stack, registers, TLS block. Its first words beside the link: who takes threads off such a
    /// queue reads both, and nothing else.
    pub continuation: Continuation,
    /// The carrier on which it is mounted. Valid only while mounted, for itself and its carrier.
    pub(crate) carrier: Cell<*const super::Carrier>,
    /// Its activity, for people to read: a [`Phase`], and above it the carrier's number.
    phase: AtomicU32,
    /// How often it has been mounted, modulo 2^32. Only its carrier writes it.
    mounts: AtomicU32,
    /// The runtime that it belongs to; the lowest bit is set if it has its own scheduler.
    home: *const Runtime,
    /// What it waits for.
    pub awaits: Awaits,
    // All above is read or written at each switch, what is below is not: with a hundred thousand
    // threads, the cache lines between here and the end are left alone.
    /// What it has used of its slice. Valid while it waits, preempted.
    pub(crate) used: Cell<Used>,
    class: SizeClass,
    /// The floating point controls of its creator, with which it begins.
    pub(super) floats: FloatControls,
    /// Whether its handle is gone, so that the result is not wanted.
    pub(super) detached: AtomicBool,
    /// Whether it has ended, and the waiter for that.
    pub(super) join: JoinCell,
    /// Its scheduler; `None` means the default one.
    scheduler: Option<Arc<dyn Dispatch>>,
    name: Option<Box<str>>,
    id: u64,
    /// The stamp of its last wake, while the recorder is on, until it runs; else 0.
    pub(super) woken: AtomicU64,
    place: Place,
    /// The id of the scope that it is a member of; 0: none.
    scope: AtomicU64,
    /// The signals that it blocks, and those pending for it.
    pub signals: Signals,
}

/// A thread's activity. `Debug` and dumps show it; no decision depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phase {
    New,
    Runnable,
    Running,
    Waiting,
    Terminated,
}

/// The part of its slice that a preempted thread has used.
#[derive(Clone, Copy, Default)]
pub(crate) struct Used(u32);

impl Used {
    /// Set if the thread has used up a slice, and not waited since.
    const COMPUTES: u32 = 1 << 31;

    /// Returns this many nanoseconds of a slice, rounded down to microseconds.
    #[inline]
    pub(crate) fn new(nanos: u64, computes: bool) -> Used {
        let micros = (nanos / 1000).min(u64::from(Used::COMPUTES - 1)) as u32;
        Used(micros | if computes { Used::COMPUTES } else { 0 })
    }

    /// Returns the number of nanoseconds.
    #[inline]
    pub fn nanos(self) -> u64 {
        u64::from(self.0 & !Used::COMPUTES) * 1000
    }

    /// Returns whether the thread has used up a slice, and not waited since.
    #[inline]
    pub(crate) fn computes(self) -> bool {
        self.0 & Used::COMPUTES != 0
    }
}

/// The place in the program where a thread was spawned.
pub type Place = &'static Location<'static>;

/// The attributes that the builder decides.
pub struct Attributes {
    pub runtime: &'static Runtime,
    pub name: Option<Box<str>>,
    pub class: SizeClass,
    pub scheduler: Option<Arc<dyn Dispatch>>,
    pub place: Place,
}

// SAFETY: the cells are touched by one thread at a time: the mounted thread itself, its carrier, or
// the owner of the right to run it; the handshake passes them on.
unsafe impl Sync for Core {}
// SAFETY: as above.
unsafe impl Send for Core {}

/// Where readers outside of the process find what.
pub const LAYOUT: [(&str, usize); 13] = {
    let continuation = offset_of!(Core, continuation);
    let [sp, tp] = Continuation::OFFSETS;
    let awaits = offset_of!(Core, awaits);
    let [what, until] = Awaits::OFFSETS;
    [
        ("thread.id", offset_of!(Core, id)),
        ("thread.name", offset_of!(Core, name)),
        ("thread.phase", offset_of!(Core, phase)),
        ("thread.handshake", offset_of!(Core, handshake)),
        ("thread.sp", continuation + sp),
        ("thread.tp", continuation + tp),
        ("thread.home", offset_of!(Core, home)),
        ("thread.mounts", offset_of!(Core, mounts)),
        ("thread.awaits", awaits + what),
        ("thread.until", awaits + until),
        ("thread.place", offset_of!(Core, place)),
        ("thread.scope", offset_of!(Core, scope)),
        ("thread.bytes", size_of::<Core>()),
    ]
};

impl Core {
    /// Has the machine fetch what a switch to a thread reads of its `Core`. The pointer is not
    /// followed: the thread may be gone.
    #[inline(always)]
    pub(crate) fn fetch(this: *const Core) {
        arch::prefetch(this.addr(), 2);
    }

    /// Where the saved stack pointer is in a record.
    #[cfg(feature = "dump")]
    pub(super) const SAVED_SP: usize = offset_of!(Core, continuation) + Continuation::OFFSETS[0];

    /// Writes the record of a thread that has not started, with two references.
    ///
    /// # Safety
    /// `place` is valid for writes.
    #[inline]
    pub(super) unsafe fn write(place: *mut Core, attributes: Attributes, vtable: &'static VTable) {
        // Unsafe: the caller's contract.
        write_fields!(unsafe place => Core {
            references: AtomicUsize::new(2),
            vtable: vtable,
            handshake: Handshake::new(),
            permit: ParkPermit::new(),
            wait: WaitWord::idle(),
            at_mount: AtMount::new(),
            continuation: Continuation::new(),
            carrier: Cell::new(core::ptr::null()),
            next: Cell::new(core::ptr::null()),
            join: JoinCell::new(),
            home: {
                let elsewhere = usize::from(attributes.scheduler.is_some());
                ptr::from_ref(attributes.runtime).map_addr(|home| home | elsewhere)
            },
            scheduler: attributes.scheduler,
            name: attributes.name,
            id: identity::next_id(),
            phase: AtomicU32::new(Phase::New as u32),
            mounts: AtomicU32::new(0),
            awaits: Awaits::new(),
            woken: AtomicU64::new(0),
            used: Cell::new(Used::default()),
            class: attributes.class,
            floats: FloatControls::of_this_thread(),
            detached: AtomicBool::new(false),
            place: attributes.place,
            scope: AtomicU64::new(0),
            signals: Signals::inherited(),
        });
    }

    /// Returns its id.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns its name, if it was given one.
    #[inline]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns its stack, once it has run.
    #[inline]
    pub fn slot(&self) -> Option<Slot> {
        self.continuation.slot()
    }

    /// Returns the size class in which its stack was reserved.
    #[inline]
    pub(crate) fn class(&self) -> SizeClass {
        self.class
    }

    /// Returns the scheduler that it was given; `None` means the default one.
    #[inline]
    pub(crate) fn scheduler(&self) -> Option<&Arc<dyn Dispatch>> {
        self.scheduler.as_ref()
    }

    /// Returns the runtime that it belongs to.
    #[inline]
    pub fn runtime(&self) -> &'static Runtime {
        // SAFETY: `write` got a `'static` reference, and a runtime's address is even.
        unsafe { &*self.home.map_addr(|home| home & !1) }
    }

    /// Returns whether it waits in the queues of `runtime` when it is runnable.
    #[inline(always)]
    pub(crate) fn is_queued_in(&self, runtime: &Runtime) -> bool {
        ptr::eq(self.home, runtime)
    }

    #[inline]
    pub(crate) fn vtable(&self) -> &'static VTable {
        self.vtable
    }

    /// Returns its activity.
    #[inline]
    pub fn phase(&self) -> Phase {
        // Relaxed: for people to read.
        match self.phase.load(Ordering::Relaxed) & 0xff {
            0 => Phase::New,
            1 => Phase::Runnable,
            2 => Phase::Running,
            3 => Phase::Waiting,
            _ => Phase::Terminated,
        }
    }

    #[inline]
    pub(crate) fn set_phase(&self, phase: Phase) {
        // Release: pairs with the Acquire in `is_runnable`: the thread is off its stack.
        self.phase.store(phase as u32, Ordering::Release);
    }

    /// Returns whether the thread is runnable, and so off its stack. A caller that has
    /// [held](AtMount::hold) it before may then read that.
    #[cfg(feature = "dump")]
    #[inline]
    pub fn is_runnable(&self) -> bool {
        // Acquire: pairs with the Release in `set_phase`.
        self.phase.load(Ordering::Acquire) == Phase::Runnable as u32
    }

    /// Marks the thread, if it waits, until it runs again. Returns whether it has been marked
    /// before and has not run since.
    #[inline]
    pub fn mark_waiting(&self) -> bool {
        const MARK: u32 = 1 << 8;
        let (waiting, order) = (Phase::Waiting as u32, Ordering::Relaxed);
        // Relaxed: whether it is paged out depends on this, but nothing that it does.
        let marked = self
            .phase
            .compare_exchange(waiting, waiting | MARK, order, order);
        marked == Err(waiting | MARK)
    }

    /// Records that it is mounted on the carrier with this number, which calls this.
    #[inline]
    pub(crate) fn set_running(&self, carrier: u32) {
        let value = Phase::Running as u32 | carrier << 8;
        self.phase.store(value, Ordering::Relaxed); // Relaxed: as above.
        // Relaxed, and no read-modify-write: only the carrier that mounts it writes it.
        let mounts = self.mounts.load(Ordering::Relaxed).wrapping_add(1);
        self.mounts.store(mounts, Ordering::Relaxed);
    }

    /// Returns how often it has been mounted, modulo 2^32.
    #[inline]
    pub fn mounts(&self) -> u32 {
        self.mounts.load(Ordering::Relaxed) // Relaxed: for people to read.
    }

    /// Returns where it was spawned.
    #[inline]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns the id of the scope that it is a member of; 0: none.
    #[inline]
    pub fn scope(&self) -> u64 {
        self.scope.load(Ordering::Relaxed) // Relaxed: complete in itself.
    }

    /// Records the scope that it is a member of, before it runs.
    #[inline]
    pub fn set_scope(&self, scope: u64) {
        self.scope.store(scope, Ordering::Relaxed); // Relaxed: as above.
    }

    /// Returns the number of the carrier on which it is mounted, or was a moment ago.
    #[inline]
    pub fn carrier_number(&self) -> Option<u32> {
        let value = self.phase.load(Ordering::Relaxed); // Relaxed: as above.
        (value & 0xff == Phase::Running as u32).then_some(value >> 8)
    }
}
