//! The record of a virtual thread.
//!
//! One [allocation](crate::sched::body) holds everything: the [`Core`], which does not depend on
//! types, and the body, which does. [Counted references](super::ThreadRef) keep it alive: the
//! join handle has one, each `Thread` one, and the thread itself one, which is released at its end.

use super::Dispatch;
use super::signals::Signals;
use super::state::Handshake;
use super::state::JoinCell;
use super::state::MountFlags;
use super::state::ParkPermit;
use super::wait_reason::WaitInfo;
use super::wait_word::WaitWord;
use crate::arch::{self, FloatControls};
use crate::continuation::Continuation;
use crate::stack::{SizeClass, Slot};
use core::cell::Cell;
use core::mem::offset_of;
use core::panic::Location;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

/// Writes a value in its final place, field by field: `write_fields!(unsafe place => Type { … })`.
///
/// Threads are spawned so often that it is measurable to make a record elsewhere and copy it. A
/// missing field is a compile error.
///
/// # Safety
/// `place` is valid for writes.
#[macro_export]
#[doc(hidden)]
macro_rules! write_fields {
    (unsafe $place:ident => $name:ident { $($field:ident: $value:expr,)* }) => {{
        // SAFETY: the contract of the macro.
        unsafe { $((&raw mut (*$place).$field).write($value);)* }
        let _never_called = || {
            // SAFETY: by the contract; and by then all fields are written.
            let $name { $($field: _),* } = unsafe { &*$place };
        };
    }};
}

/// The functions of a [body](crate::sched::body::Body) whose type has been erased.
pub(crate) struct VTable {
    /// See [`run`](crate::sched::body::Body::run).
    pub(crate) run: unsafe fn(NonNull<Core>),
    /// See [`abandon`](crate::sched::body::Body::abandon).
    pub(crate) abandon: unsafe fn(NonNull<Core>),
    /// See [`drop_result`](crate::sched::body::Body::drop_result).
    pub(crate) drop_result: unsafe fn(NonNull<Core>),
    /// See [`ended`](crate::sched::body::Body::ended).
    pub(crate) ended: unsafe fn(NonNull<Core>),
    /// See [`code`](crate::sched::body::Body::code).
    pub(crate) code: fn() -> &'static str,
    /// Frees the allocation.
    pub(crate) free: unsafe fn(NonNull<Core>),
    /// The offset of the body in the allocation.
    pub(crate) body: usize,
}

/// The address of a runtime, which only the scheduler follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Home(*const ());

impl Home {
    /// Set in the home of a thread that has its own scheduler, or a simulator.
    const ELSEWHERE: usize = 1;

    /// Returns the home of threads of this runtime that do not wait in its queues.
    #[inline]
    pub(crate) fn elsewhere(self) -> Home {
        Home(self.0.map_addr(|home| home | Home::ELSEWHERE))
    }

    /// # Safety
    /// `R` is the scheduler's type of runtimes.
    #[inline(always)]
    pub(crate) unsafe fn new<R>(runtime: &'static R) -> Home {
        const { assert!(align_of::<R>() > Home::ELSEWHERE) };
        Home(ptr::from_ref(runtime).cast())
    }

    /// Returns the runtime.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    #[inline(always)]
    pub(crate) unsafe fn runtime<R>(self) -> &'static R {
        let runtime = self.0.map_addr(|home| home & !Home::ELSEWHERE);
        // SAFETY: `new` got a `'static` reference to one of these, by the caller's contract.
        unsafe { &*runtime.cast() }
    }
}

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
    pub mount_flags: MountFlags,
    /// The link of the queue that owns it while it waits to run.
    pub(crate) next: Cell<*const Core>,
    /// Stack, registers, TLS block. Its first words lie beside the link: a carrier that takes
    /// threads off a queue reads both, and nothing else.
    pub continuation: Continuation,
    /// The address of the carrier on which it is mounted, which only the scheduler follows. Valid
    /// only while the thread is mounted, for the thread and its carrier.
    pub(crate) carrier: Cell<*const ()>,
    /// The number of the carrier on which it is mounted, plus 1; 0: it is not mounted. For
    /// observers; a sender of signals also learns from it which carrier to interrupt.
    mounted_on: AtomicU32,
    /// How often it has been mounted, modulo 2^32. Only its carrier writes it.
    mounts: AtomicU32,
    /// The runtime that it belongs to; the lowest bit is set if it has its own scheduler.
    home: Home,
    /// What it waits for.
    pub wait_info: WaitInfo,
    // Each switch reads or writes the fields above, and none of the fields below: with a hundred
    // thousand threads, it leaves the cache lines between here and the end alone.
    /// What it has used of its slice. Valid while it waits, preempted.
    pub(crate) used: Cell<Used>,
    class: SizeClass,
    /// The floating point controls of its creator, with which it begins.
    pub(crate) floats: FloatControls,
    /// Whether its handle is gone, so that the result is not wanted.
    pub(super) detached: AtomicBool,
    /// Whether it has ended, and the waiter for that.
    pub(super) join: JoinCell,
    /// Its scheduler; `None` means the default one.
    scheduler: Option<Arc<dyn Dispatch>>,
    name: Option<Box<str>>,
    id: u64,
    /// The stamp of its last wake, while the recorder is on, until it runs; else 0.
    pub(crate) woken: AtomicU64,
    place: Place,
    /// The id of the scope that it is a member of; 0: none.
    scope: AtomicU64,
    /// The signals that it blocks, and those pending for it.
    pub signals: Signals,
}

/// What a thread does, as its words say at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The thread has not been mounted yet.
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
    pub home: Home,
    pub name: Option<Box<str>>,
    pub class: SizeClass,
    pub scheduler: Option<Arc<dyn Dispatch>>,
    pub place: Place,
}

// SAFETY: the cells are touched by one thread at a time: the mounted thread itself, its carrier, or
// the owner of the right to run it; the handshake passes them on.
unsafe impl Sync for Core {}
// SAFETY: the cells are touched by one thread at a time: the mounted thread itself, its carrier, or
// the owner of the right to run it; the handshake passes them on.
unsafe impl Send for Core {}

/// Where readers outside of the process find the fields.
pub const LAYOUT: [(&str, usize); 13] = {
    let continuation = offset_of!(Core, continuation);
    let [sp, tp] = Continuation::OFFSETS;
    let wait_info = offset_of!(Core, wait_info);
    let [what, until] = WaitInfo::OFFSETS;
    [
        ("thread.id", offset_of!(Core, id)),
        ("thread.name", offset_of!(Core, name)),
        ("thread.mounted_on", offset_of!(Core, mounted_on)),
        ("thread.handshake", offset_of!(Core, handshake)),
        ("thread.sp", continuation + sp),
        ("thread.tp", continuation + tp),
        ("thread.home", offset_of!(Core, home)),
        ("thread.mounts", offset_of!(Core, mounts)),
        ("thread.awaits", wait_info + what),
        ("thread.until", wait_info + until),
        ("thread.place", offset_of!(Core, place)),
        ("thread.scope", offset_of!(Core, scope)),
        ("thread.bytes", size_of::<Core>()),
    ]
};

impl Core {
    /// Makes the machine prefetch what a switch to a thread reads of its `Core`. Does not follow
    /// the pointer: the thread may be gone.
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
    pub(crate) unsafe fn write(
        place: *mut Core,
        id: u64,
        attributes: Attributes,
        vtable: &'static VTable,
    ) {
        // Unsafe: the caller's contract.
        write_fields!(unsafe place => Core {
            references: AtomicUsize::new(2),
            vtable: vtable,
            handshake: Handshake::new(),
            permit: ParkPermit::new(),
            wait: WaitWord::idle(),
            mount_flags: MountFlags::new(),
            continuation: Continuation::new(),
            carrier: Cell::new(core::ptr::null()),
            next: Cell::new(core::ptr::null()),
            join: JoinCell::new(),
            home: match attributes.scheduler {
                None => attributes.home,
                Some(_) => attributes.home.elsewhere(),
            },
            scheduler: attributes.scheduler,
            name: attributes.name,
            id: id,
            mounted_on: AtomicU32::new(0),
            mounts: AtomicU32::new(0),
            wait_info: WaitInfo::new(),
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

    /// Returns where the runtime is that it belongs to.
    #[inline(always)]
    pub(crate) fn home(&self) -> Home {
        self.home
    }

    /// Returns whether it waits in the queues of the runtime at `home` when it is runnable.
    #[inline(always)]
    pub(crate) fn is_queued_in(&self, home: Home) -> bool {
        self.home == home
    }

    #[inline]
    pub(crate) fn vtable(&self) -> &'static VTable {
        self.vtable
    }

    /// Returns what the thread does. A statistic: it may have changed meanwhile.
    pub fn state(&self) -> State {
        if self.has_ended() {
            return State::Terminated;
        }
        match self.carrier_number() {
            Some(_) => State::Running,
            None if self.handshake.is_parked() => State::Waiting,
            None if self.mounts() == 0 => State::New,
            None => State::Runnable,
        }
    }

    /// Returns whether the thread is off its stack. A caller that has [held](MountFlags::hold) the
    /// thread before may then read that stack.
    #[cfg(feature = "dump")]
    #[inline]
    pub fn is_off_stack(&self) -> bool {
        // Acquire: pairs with the Release in `set_unmounted`.
        self.mounted_on.load(Ordering::Acquire) == 0
    }

    /// Records that the thread is off its stack. Called by the carrier that it has left, unless the
    /// thread has ended.
    #[inline(always)]
    pub(crate) fn set_unmounted(&self) {
        // Release: publishes the saved context to `is_off_stack`.
        self.mounted_on.store(0, Ordering::Release);
    }

    /// Records that it is mounted on the carrier with this number, which calls this.
    #[inline(always)]
    pub(crate) fn set_mounted_on(&self, carrier: u32) {
        // Relaxed, and no read-modify-write: only the carrier that mounts it writes it.
        let mounts = self.mounts.load(Ordering::Relaxed).wrapping_add(1);
        // Release: pairs with the Acquire in `mounts`: the carrier is not an earlier one.
        self.mounts.store(mounts, Ordering::Release);
        // Release: pairs with the Acquire in `carrier_number`, and see `MountFlags`.
        self.mounted_on.store(carrier + 1, Ordering::Release);
    }

    /// Returns how often it has been mounted, modulo 2^32.
    #[inline]
    pub fn mounts(&self) -> u32 {
        self.mounts.load(Ordering::Acquire) // Acquire: pairs with the Release in `set_mounted_on`.
    }

    /// Returns where it was spawned.
    #[inline]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns the id of the scope that it is a member of; 0: none.
    #[inline]
    pub fn scope(&self) -> u64 {
        self.scope.load(Ordering::Relaxed) // Relaxed: no other data.
    }

    /// Records the scope that it is a member of, before it runs.
    #[inline]
    pub fn set_scope(&self, scope: u64) {
        self.scope.store(scope, Ordering::Relaxed); // Relaxed: no other data.
    }

    /// Returns the number of the carrier on which it is mounted, or was a moment ago.
    #[inline]
    pub fn carrier_number(&self) -> Option<u32> {
        // Acquire: the mount that is counted, or the thread's account, is not an earlier one. The
        // word of an ended thread keeps its last carrier.
        let number = self.mounted_on.load(Ordering::Acquire).checked_sub(1);
        number.filter(|_| !self.has_ended())
    }
}
