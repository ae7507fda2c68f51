//! The record of a virtual thread.
//!
//! One [allocation](super::body) holds everything: the [`Core`], which does not depend on types,
//! and the body, which does. [Counted references](super::reference) keep it alive: the join
//! handle's, one per `Thread`, and one that belongs to the thread itself and is given up at its
//! end.

use super::body::{VTable, write_fields};
use super::handshake::Handshake;
use super::ids;
use super::join::JoinCell;
use super::permit::ParkPermit;
use super::ready::Dispatch;
use super::wait_word::WaitWord;
use crate::continuation::Continuation;
use crate::runtime::Runtime;
use crate::stack::{SizeClass, Slot};
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

/// The part of a virtual thread that does not depend on its closure.
#[repr(C)]
pub(crate) struct Core {
    /// How many [`ThreadRef`](super::ThreadRef)s there are, and the thread's own.
    pub(super) references: AtomicUsize,
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
    pub(crate) carrier: Cell<*const super::Carrier>,
    /// Link of the queue that owns it while it waits to run.
    pub(crate) next: Cell<*const Core>,
    /// Whether it has ended, and what waits for that.
    pub(super) join: JoinCell,
    /// The runtime that it belongs to; the lowest bit is set if it has a scheduler of its own.
    home: *const Runtime,
    /// Its scheduler; none means the default one.
    scheduler: Option<Arc<dyn Dispatch>>,
    name: Option<Box<str>>,
    id: u64,
    /// What it is doing, for people to read: a [`Phase`], and above it the carrier's number.
    phase: AtomicU64,
    class: SizeClass,
    /// Whether its handle is gone, so that nobody will ask for the result.
    pub(super) detached: AtomicBool,
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
pub(crate) struct Attributes {
    pub(crate) runtime: &'static Runtime,
    pub(crate) name: Option<Box<str>>,
    pub(crate) class: SizeClass,
    pub(crate) scheduler: Option<Arc<dyn Dispatch>>,
}

// SAFETY: the cells are touched by one thread at a time: the mounted thread itself, its carrier, or
// whoever holds the right to run it; the handshake passes them on.
unsafe impl Sync for Core {}
// SAFETY: as above.
unsafe impl Send for Core {}

impl Core {
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
            id: ids::next(),
            phase: AtomicU64::new(Phase::New as u64),
            class: attributes.class,
            detached: AtomicBool::new(false),
        });
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
    pub(crate) fn scheduler(&self) -> Option<&Arc<dyn Dispatch>> {
        self.scheduler.as_ref()
    }

    /// Returns the runtime that it belongs to.
    pub(crate) fn runtime(&self) -> &'static Runtime {
        // SAFETY: `write` got a reference for ever, and a runtime's address is even.
        unsafe { &*self.home.map_addr(|home| home & !1) }
    }

    /// Returns whether it waits in the queues of `runtime` when it may run.
    #[inline(always)]
    pub(crate) fn is_queued_in(&self, runtime: &Runtime) -> bool {
        ptr::eq(self.home, runtime)
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
}
