//! The words of a virtual thread, and their lock-free protocols.
//!
//! ```text
//!                        mount                     suspend(Park)
//!   queue: a `Ready` ---------------> mounted ----------------------> parked
//!     ^                                  | suspend(Yield, Preempt)      |
//!     +----------------------------------+                              |
//!     +-----------------------------------------------------------------+  wake: a `Claimed`
//! ```
//!
//! | word | question | written by the thread | written by its carrier | written by others |
//! |---|---|---|---|---|
//! | [`Handshake`] | off its stack, and woken? | `woken_early`, `resumed` | `parked`, after the switch | the waker; a dump, around reading a parked stack |
//! | [`ParkPermit`] | may `park` return? | `begin_park`, `end_park` | | `unpark`; its timer; an interrupter |
//! | [`WaitWord`](super::wait_word::WaitWord) | how does the wait end? interrupted? safe point requested? | `begin`, `take`, `take_request` | | the one that decides the wait; an interrupter; a sender of signals |
//! | [`MountFlags`] | what must the next mount do? | | `take`, at the mount | the waker, to time it; a dump, around reading a runnable stack |
//! | [`JoinCell`] | ended? which thread waits for it? | `finish` | | the owner of the handle |
//! | [`TableEntry`] | which record is in this slot? | | `enter` at the first mount, `leave` at the end | a reader, while it looks |
//! | `mounted_on`, in [`Core`](super::Core) | on which carrier is it? | | the number at the mount; 0 after the switch | |
//!
//! A waker first claims the wait (`WaitWord`) or the permit, which makes it the only one, and then
//! wakes by the handshake, which says whether the waker or the carrier enqueues the thread.
//! Observers read `mounted_on`: what a thread does ([`State`](super::record::State)) follows from
//! it, the handshake and the join cell, and a dump that holds a thread learns from it whether the
//! thread is off its stack (see [`MountFlags`]). A request for a safe point reads it as well, to
//! learn which carrier to interrupt.

use crate::primitives::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::primitives::{AtomicPtr, AtomicU32};
use core::ptr::{self, NonNull};

/// The handshake between a thread that leaves its stack and a thread that wakes it meanwhile.
///
/// A thread that parks becomes visible to wakers while it still runs: it has registered with a
/// timer, a poller or a wait queue, and its registers are not yet saved. If the waker put it on a
/// run queue then, another carrier could mount a stack that is in use. So the thread goes on a run
/// queue only when *both* have happened: it is off its stack, and it was woken. The second of the
/// two events enqueues it.
///
/// ```text
///   RUNNING    mounted, or on the way to being parked: its context is not saved
///   PARKED     off its stack, context saved, not woken
///   INSPECTED  parked, and a reader reads its stack
///   RUNNABLE   woken
///
///   from       to         by                which means
///   RUNNING    PARKED     parked            the thread is off its stack; the waker enqueues it
///   PARKED     RUNNABLE   wake              the waker came second: it enqueues the thread
///   RUNNING    RUNNABLE   wake              the waker came first
///   RUNNABLE   RUNNABLE   parked            ... and the caller of `parked` enqueues the thread
///   RUNNABLE   RUNNING    woken_early       ... or the thread never left its stack
///   RUNNABLE   RUNNING    resumed           the thread runs again
///   PARKED     INSPECTED  begin_inspection  the reader may read the stack
///   INSPECTED  PARKED     end_inspection    no waker came meanwhile
///   INSPECTED  RUNNABLE   wake              the waker came meanwhile
///   RUNNABLE   RUNNABLE   end_inspection    ... and the reader enqueues the thread
/// ```
///
/// There must be exactly one `wake` per park episode. `ParkPermit` and the wait queues ensure this:
/// only one waker claims their entry for the thread. A thread that yields changes no state here: it
/// stays `RUNNING`, and the code on the next stack enqueues it. Neither does a thread that is
/// preempted. It may be on its way to being parked, and then it may be `RUNNABLE`, and stays so:
/// its waker has left it to `woken_early` to notice the wake. Therefore the thread that has parked
/// calls `resumed`, and not the code that mounts it.
#[derive(Debug)]
pub(crate) struct Handshake {
    state: AtomicU32,
}

impl Handshake {
    const RUNNING: u32 = 0;
    const PARKED: u32 = 1;
    const RUNNABLE: u32 = 2;
    const INSPECTED: u32 = 3;

    /// Returns the handshake of a running thread.
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU32::new(Handshake::RUNNING),
        }
    }

    /// `RUNNABLE → RUNNING`. For the thread itself, as the last step before it leaves its stack: if
    /// this returns `true`, the thread was woken already and goes on.
    #[must_use = "`true` means that the thread was woken: it must not leave its stack"]
    pub(crate) fn woken_early(&self) -> bool {
        // Acquire: pairs with the Release in `wake`, for what the waker did before.
        let woken = self.state.load(Acquire) == Handshake::RUNNABLE;
        if woken {
            // Relaxed: the only wake of this episode has happened, and the next waker learns of the
            // next episode from this thread. For the same reason a store suffices in place of a
            // swap.
            self.state.store(Handshake::RUNNING, Relaxed);
        }
        woken
    }

    /// `RUNNING → PARKED`. For the code on the next stack, once the thread's context has been
    /// saved. Returns `false` if the thread was woken meanwhile: then the caller must enqueue it.
    ///
    /// After `true` the caller must not touch the thread: it may be running, or gone.
    #[must_use = "`false` is the duty to enqueue the thread"]
    #[inline]
    pub(crate) fn parked(&self) -> bool {
        // Release: pairs with the Acquire in `wake`, for the saved context. Acquire on failure:
        // pairs with the Release in `wake`, for what the waker did before.
        let parked =
            self.state
                .compare_exchange(Handshake::RUNNING, Handshake::PARKED, Release, Acquire);
        debug_assert_ne!(parked, Err(Handshake::PARKED), "a thread parked twice");
        parked.is_ok()
    }

    /// `any → RUNNABLE`, once per episode. Returns `true` if the thread was off its stack, and no
    /// reader was reading the stack: then the caller must enqueue the thread.
    ///
    /// After `false` the caller must not touch the thread: it may be running, or gone.
    #[must_use = "`true` is the duty to enqueue the thread"]
    #[inline]
    pub(crate) fn wake(&self) -> bool {
        // Acquire: pairs with the Release in `parked`, for the saved context, and in
        // `end_inspection`, for the reads of the stack. Release: pairs with the Acquire in
        // `parked`, `woken_early` and `end_inspection`, for what the caller did before.
        let before = self.state.swap(Handshake::RUNNABLE, AcqRel);
        debug_assert_ne!(before, Handshake::RUNNABLE, "a thread woken twice");
        before == Handshake::PARKED
    }

    /// Returns whether the thread waits off its stack. A statistic: it may have been woken since.
    #[inline]
    pub(crate) fn is_parked(&self) -> bool {
        // Relaxed: statistics only.
        matches!(
            self.state.load(Relaxed),
            Handshake::PARKED | Handshake::INSPECTED
        )
    }

    /// `PARKED → INSPECTED`. Returns whether the thread is parked: then it stays so, and its stack
    /// may be read, until [`end_inspection`](Self::end_inspection), which must follow.
    #[must_use = "`true` is the duty to call `end_inspection`"]
    #[inline]
    pub(crate) fn begin_inspection(&self) -> bool {
        // Acquire: pairs with the Release in `parked`, for the saved context. Relaxed on failure:
        // nothing is concluded.
        self.state
            .compare_exchange(Handshake::PARKED, Handshake::INSPECTED, Acquire, Relaxed)
            .is_ok()
    }

    /// `INSPECTED → PARKED`. Returns `false` if the thread was woken meanwhile: then the caller
    /// must enqueue it.
    ///
    /// After `true` the caller must not touch the thread's stack.
    #[must_use = "`false` is the duty to enqueue the thread"]
    #[inline]
    pub(crate) fn end_inspection(&self) -> bool {
        // Release: pairs with the Acquire in `wake`, for our reads of the stack. Acquire on
        // failure: pairs with the Release in `wake`, for what the waker did before.
        let parked =
            self.state
                .compare_exchange(Handshake::INSPECTED, Handshake::PARKED, Release, Acquire);
        parked.is_ok()
    }

    /// `RUNNABLE → RUNNING`. For the thread itself, once it runs again after it was parked.
    #[inline]
    pub(crate) fn resumed(&self) {
        // Relaxed: the run queue has ordered this after the wake-up, and the next waker learns of
        // the next episode from this thread.
        self.state.store(Handshake::RUNNING, Relaxed);
    }
}

/// The park permit, which `park` waits for and `unpark` makes available.
///
/// ```text
///   EMPTY     no permit; the thread is not parked
///   PARKED    the thread is parked, or on its way there, and has to be woken
///   NOTIFIED  there is a permit
///
///   from       to         by             which means
///   EMPTY      PARKED     begin_park     the thread will park
///   NOTIFIED   EMPTY      begin_park     ... or finds a permit and does not
///   NOTIFIED   EMPTY      try_consume    the same, before any preparation to park
///   EMPTY      NOTIFIED   unpark         the next park returns at once
///   PARKED     NOTIFIED   unpark         the caller has to wake the thread
///   NOTIFIED   NOTIFIED   unpark         permits do not add up
///   PARKED     EMPTY      expire         time is up: the caller has to wake the thread
///   NOTIFIED   EMPTY      end_park       the thread runs again and uses up its permit
///   EMPTY      EMPTY      end_park       ... or it had expired
/// ```
///
/// `PARKED` is entered once and left once per episode, by one read-modify-write of one thread. That
/// thread, and no other, has the right and the duty to wake the parked one. The `Handshake` relies
/// on this guarantee.
///
/// A permit that comes after the expiry but before `end_park` is consumed by `end_park`, as in
/// `std`: the park has not returned yet, and either may have woken the thread.
///
/// A thread has at most one permit. The thread itself calls `try_consume`, `begin_park` and
/// `end_park`; all others call `unpark` and `expire`. Everything before an `unpark` happens before
/// the return of the park that consumes its permit.
#[derive(Debug)]
pub struct ParkPermit {
    state: AtomicU32,
}

impl ParkPermit {
    const EMPTY: u32 = 0;
    const PARKED: u32 = 1;
    const NOTIFIED: u32 = 2;

    /// Returns a state without a permit.
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU32::new(ParkPermit::EMPTY),
        }
    }

    /// `NOTIFIED → EMPTY`. Returns whether a permit was there: then park returns at once.
    #[must_use]
    #[inline]
    pub fn try_consume(&self) -> bool {
        // Acquire: pairs with the Release in `unpark`, for what its caller did before. Relaxed on
        // failure: nothing is concluded from it.
        self.state
            .compare_exchange(ParkPermit::NOTIFIED, ParkPermit::EMPTY, Acquire, Relaxed)
            .is_ok()
    }

    /// `EMPTY → PARKED`, or `NOTIFIED → EMPTY`. Returns `true` if the thread must park, `false` if
    /// it found a permit and has consumed it.
    ///
    /// From a `true` on, the wake-up may come, even though the thread still runs.
    #[must_use]
    pub fn begin_park(&self) -> bool {
        // Release: pairs with the Acquire in `unpark` and `expire`: the thread that must wake this
        // one sees what it prepared. Relaxed on failure: the swap below acquires.
        let parking = self
            .state
            .compare_exchange(ParkPermit::EMPTY, ParkPermit::PARKED, Release, Relaxed)
            .is_ok();
        if !parking {
            // Acquire: pairs with the Release in `unpark`. It must be a swap: a plain store could
            // overwrite, unseen, the permit of a later `unpark`.
            let permit = self.state.swap(ParkPermit::EMPTY, Acquire);
            debug_assert_eq!(
                permit,
                ParkPermit::NOTIFIED,
                "two threads park on one permit"
            );
        }
        parking
    }

    /// `any → NOTIFIED`. Returns `true` if the thread was parked: then the caller must wake it.
    #[must_use = "`true` is the duty to wake the thread"]
    #[inline]
    pub fn unpark(&self) -> bool {
        // Release: pairs with the Acquire in `try_consume`, `begin_park` and `end_park`, for what
        // the caller did before. Acquire: pairs with the Release in `begin_park`, for what the
        // thread prepared.
        self.state.swap(ParkPermit::NOTIFIED, AcqRel) == ParkPermit::PARKED
    }

    /// `PARKED → EMPTY`, for a timer or an interrupt. Returns `true` if the caller must wake the
    /// thread, `false` if it was not parked or another thread must wake it.
    ///
    /// A late expiry, in the thread's next park, ends that park. So cancel timers before
    /// `end_park`, or accept the spurious return.
    #[must_use = "`true` is the duty to wake the thread"]
    #[inline]
    pub(crate) fn expire(&self) -> bool {
        // Acquire: pairs with the Release in `begin_park`, for what the thread prepared. No
        // Release: there is no permit, and the wake-up itself orders the caller before the thread.
        // Relaxed on failure: another thread performs the wake-up, or no thread waits.
        self.state
            .compare_exchange(ParkPermit::PARKED, ParkPermit::EMPTY, Acquire, Relaxed)
            .is_ok()
    }

    /// `NOTIFIED → EMPTY`, or `EMPTY` unchanged. For the thread that was woken, when it runs again.
    /// Returns whether it has consumed a permit; if not, the park expired.
    #[inline]
    pub fn end_park(&self) -> bool {
        // Acquire: pairs with the Release in `unpark`, for what its caller did before.
        let woken_by = self.state.swap(ParkPermit::EMPTY, Acquire);
        debug_assert_ne!(
            woken_by,
            ParkPermit::PARKED,
            "a thread runs that was not woken"
        );
        woken_by == ParkPermit::NOTIFIED
    }
}

/// The binary logarithm of the unit of time, in nanoseconds.
const UNIT: u32 = 7;

/// What the next mount of a thread has to do besides mounting it.
///
/// The word is nearly always NOTHING, and a mount looks at it in any case, because a new thread
/// needs a stack. So it costs the other threads nothing that some are timed
/// ([`counters`](crate::sched::counters)), or that a reader holds a runnable one to read its stack.
/// No reader holds one that is FIRST: there is nothing to read.
///
/// ```text
///   31                              1   0
///   +-------------------------------+---+
///   | time at which it became       | 0 |   0 in all: NOTHING; 3: ASKED; 5: HELD
///   | runnable, in units of 128 ns  |   |   1: FIRST, it has never been mounted
///   +-------------------------------+---+   a time and FIRST: both
/// ```
///
/// A runnable thread is in one of many queues, and may be mounted at any moment. A dump that wants
/// to read its stack holds it here, and not in its queue:
///
/// ```text
///   a dump                                          a carrier that mounts it
///   L1  NOTHING or a time -> ASKED    ask           M1  mounted_on = its number
///   L2  a full barrier in each running thread           (the compiler keeps the order)
///   L3  ASKED -> HELD                 hold          M2  is the word NOTHING?
///   L4  mounted_on = 0: reads the stack             M3    ASKED -> NOTHING, and goes on
///   L5  HELD -> NOTHING               release             HELD: waits until that is over
/// ```
///
/// Either M2 comes after L2's barrier in the carrier: then M2 finds HELD, or it finds ASKED, and L3
/// fails. Or M2 comes before the barrier: then M1 does too, and L4 finds that the thread runs, or
/// has run and is off its stack again. `sys::membarrier` is the barrier. The models have fences in
/// its place: for L2, and between M1 and M2.
#[derive(Debug)]
pub struct MountFlags(AtomicU32);

/// What a mount has to do besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MountWork(u32);

impl MountFlags {
    const NOTHING: u32 = 0;
    const FIRST: u32 = 1;
    const ASKED: u32 = 3;
    const HELD: u32 = 5;

    /// Returns the word of a new thread.
    #[inline]
    pub(crate) fn new() -> MountFlags {
        MountFlags(AtomicU32::new(MountFlags::FIRST))
    }

    /// Returns whether there is nothing to do. Called by the carrier that mounts the thread, after
    /// step M1.
    #[inline(always)]
    pub(crate) fn is_nothing(&self) -> bool {
        // Acquire: pairs with the Release in `release`: the stack has been read.
        self.0.load(Acquire) == MountFlags::NOTHING
    }

    /// Takes what there is to do. Waits while a reader holds the thread. Called by the carrier that
    /// mounts the thread.
    pub(crate) fn take(&self, mut wait: impl FnMut(u32)) -> MountWork {
        let mut round = 0;
        loop {
            let duty = self.0.load(Relaxed); // Relaxed: the exchange checks it.
            if duty == MountFlags::FIRST {
                // No reader asks for a new thread. So no exchange is needed, which would make each
                // spawn slower. Release: as below.
                self.0.store(MountFlags::NOTHING, Release);
                return MountWork(duty);
            }
            // Acquire: as in `is_nothing`. Release: pairs with the Acquire in `hold`, for our
            // `mounted_on`. Relaxed: looked at again.
            let taken = duty != MountFlags::HELD
                && self
                    .0
                    .compare_exchange(duty, MountFlags::NOTHING, AcqRel, Relaxed)
                    .is_ok();
            if taken {
                return MountWork(if duty == MountFlags::ASKED {
                    MountFlags::NOTHING
                } else {
                    duty
                });
            }
            wait(round);
            round += 1;
        }
    }

    /// Makes the next mount measure for how long the thread has been runnable, counted from `now`.
    /// Called by the thread that makes it runnable.
    pub(crate) fn time(&self, now: u64) {
        let time = match ((now >> UNIT) as u32) << 1 {
            ..=4 => u32::MAX - 1, // some units earlier: these numbers have meanings of their own
            time => time,
        };
        let before = self.0.load(Relaxed); // Relaxed: the exchange checks it.
        if matches!(before, MountFlags::NOTHING | MountFlags::FIRST) {
            // Relaxed: no other data. The time is lost if a reader asks for the thread just now.
            let _ = self
                .0
                .compare_exchange(before, time | before, Relaxed, Relaxed);
        }
    }

    /// `NOTHING → ASKED`. A barrier in every thread must follow. Returns `false` if another reader
    /// has asked, or the thread is new.
    #[must_use = "`true` is the duty to hold or to withdraw"]
    #[inline]
    pub fn ask(&self) -> bool {
        let before = self.0.load(Relaxed); // Relaxed: the exchange checks it.
        // Relaxed: the barrier follows.
        before & 1 == 0
            && self
                .0
                .compare_exchange(before, MountFlags::ASKED, Relaxed, Relaxed)
                .is_ok()
    }

    /// `ASKED → HELD`. No carrier mounts the thread from now on. `mounted_on` says whether a
    /// carrier has mounted it before. Returns `false` if a carrier is mounting it.
    #[must_use = "`true` is the duty to release"]
    #[inline]
    pub fn hold(&self) -> bool {
        // Acquire: pairs with the Release in `take`. The word may be a later reader's ASKED, when a
        // mount has consumed ours after our barrier. Relaxed: a failure decides nothing.
        self.0
            .compare_exchange(MountFlags::ASKED, MountFlags::HELD, Acquire, Relaxed)
            .is_ok()
    }

    /// `HELD → NOTHING`.
    #[inline]
    pub fn release(&self) {
        self.0.store(MountFlags::NOTHING, Release); // Release: pairs with the Acquire of a mount.
    }

    /// `ASKED → NOTHING`, if the word is still ASKED.
    #[inline]
    pub fn withdraw(&self) {
        // Relaxed: nothing has been read.
        let _ = self
            .0
            .compare_exchange(MountFlags::ASKED, MountFlags::NOTHING, Relaxed, Relaxed);
    }
}

impl MountWork {
    /// Returns whether the thread is mounted for the first time.
    #[inline]
    pub(crate) fn is_first(self) -> bool {
        self.0 & MountFlags::FIRST != 0
    }

    /// Returns for how many nanoseconds the thread has been runnable at the time `now()`, if this
    /// mount must measure it. Returns 0 if `now()` is before the thread became runnable, by the
    /// clock of another processor, or more than two minutes later.
    #[inline]
    pub(crate) fn runnable_for(self, now: impl FnOnce() -> u64) -> Option<u64> {
        (self.0 > MountFlags::FIRST).then(|| {
            let then = self.0 & !MountFlags::FIRST;
            let since = (((now() >> UNIT) as u32) << 1).wrapping_sub(then);
            u64::try_from(since as i32 >> 1).unwrap_or(0) << UNIT
        })
    }
}

/// The end of a thread, and the thread or task that waits for it.
///
/// ```text
///   EMPTY    (null)      the thread runs, no thread waits
///   waiter   (pointer)   the thread runs, and `waiter` is to be woken
///   DONE     (sentinel)  the thread has ended, its result is there; final
///
///   from       to         by            which means
///   EMPTY      waiter     register      the joiner will park
///   DONE       DONE       register      ... or need not
///   waiter     EMPTY      unregister    the joiner takes it back: no thread will wake it
///   DONE       DONE       unregister    ... or the finisher has it and wakes it
///   EMPTY      DONE       finish        no thread to wake
///   waiter     DONE       finish        the finisher has to wake `waiter`
/// ```
///
/// Exactly one read-modify-write, of `unregister` or of `finish`, takes the waiter out of the cell;
/// the waiter then belongs to its caller.
///
/// A joiner takes its waiter back when it gives up, or to change the waiter and register it again:
/// a future does that in each poll, because its task may have another waker by then. If the
/// finisher was faster, the joiner cannot tell when the finisher has finished with the waiter. So a
/// waiter that may be taken back must not lie on the joiner's stack, but belong to the side that
/// has it. A cell has one finisher and at most one joiner.
///
/// What the finisher did before `finish`, such as writing the result, happens before what the
/// joiner does after `is_done` returned `true`, after `register` or `unregister` returned `false`,
/// or after it was woken. The pointer to the waiter is only passed on, never followed.
#[derive(Debug)]
pub(crate) struct JoinCell {
    state: AtomicPtr<()>,
}

impl JoinCell {
    /// No waiter has this address, because waiters are pointers to objects.
    const DONE: *mut () = ptr::without_provenance_mut(1);

    /// Returns the cell of a thread that has not ended.
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Returns whether the thread has ended.
    #[inline]
    #[must_use]
    pub(crate) fn is_done(&self) -> bool {
        // Acquire: pairs with the Release in `finish`, for the result.
        self.state.load(Acquire) == JoinCell::DONE
    }

    /// `EMPTY → waiter`. Returns `false` if the thread has ended: then there is nothing to wait
    /// for, and `waiter` remains the caller's.
    ///
    /// After `true`, `waiter` must stay valid until `unregister` has returned `true` or it has been
    /// woken.
    #[inline]
    #[must_use = "`false` means that no thread will wake the waiter"]
    pub(crate) fn register(&self, waiter: NonNull<()>) -> bool {
        // Release: pairs with the Acquire in `finish`, for the target of `waiter`. Acquire on
        // failure: pairs with the Release in `finish`, for the result.
        let found = self
            .state
            .compare_exchange(ptr::null_mut(), waiter.as_ptr(), Release, Acquire);
        debug_assert!(
            found.is_ok() || found == Err(JoinCell::DONE),
            "two threads join the same one"
        );
        found.is_ok()
    }

    /// `waiter → EMPTY`, for a joiner that gives up or changes its waiter. Returns `false` if the
    /// finisher has taken the waiter: then the thread has ended, and the wake-up has come or will
    /// come.
    #[must_use = "`false` means that the waiter is still going to be woken"]
    pub(crate) fn unregister(&self, waiter: NonNull<()>) -> bool {
        // Relaxed: the finisher has not seen the waiter, and will not. Acquire on failure: pairs
        // with the Release in `finish`, for the result.
        let found = self
            .state
            .compare_exchange(waiter.as_ptr(), ptr::null_mut(), Relaxed, Acquire);
        debug_assert!(
            found.is_ok() || found == Err(JoinCell::DONE),
            "the waiter was not registered"
        );
        found.is_ok()
    }

    /// `any → DONE`, once. Returns the waiter, if there is one: the caller must wake it.
    ///
    /// The cell is not touched after the swap: a joiner that sees `DONE` may free it.
    #[must_use = "the waiter has to be woken"]
    #[inline]
    pub(crate) fn finish(&self) -> Option<NonNull<()>> {
        // Release: pairs with the Acquire in `is_done`, `register` and `unregister`, for the
        // result. Acquire: pairs with the Release in `register`, for the target of the waiter.
        let waiter = self.state.swap(JoinCell::DONE, AcqRel);
        debug_assert_ne!(waiter, JoinCell::DONE, "a thread ended twice");
        NonNull::new(waiter)
    }
}

/// The entry of a slot in the [thread table](super::table): the thread that has the slot,
/// and whether a reader looks at it.
///
/// ```text
///   entry        set by                        next
///   null         (initially); leave            record: enter
///   record       enter; look, when it is done  claimed: look;  null: leave
///   claimed      look                          record: the same look
/// ```
///
/// `leave` waits until no reader looks. So a record that is looked at stays in memory, and its
/// reader needs no counted reference.
pub(crate) struct TableEntry<T> {
    record: AtomicPtr<T>,
}

/// The error of [`TableEntry::look`]: another reader looks at the record just now.
#[derive(Debug)]
pub(crate) struct Busy;

/// An entry without a record. (The tables of the runtime begin as zeros.)
impl<T> Default for TableEntry<T> {
    fn default() -> TableEntry<T> {
        TableEntry {
            record: AtomicPtr::new(ptr::null_mut()),
        }
    }
}

impl<T> TableEntry<T> {
    /// Set in an entry while its record is looked at; records are aligned.
    pub(crate) const CLAIMED: usize = 1;

    /// Returns whether there is no record here, or was none a moment ago.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.record.load(Relaxed).is_null() // Relaxed: nothing is concluded from it.
    }

    /// Enters a record.
    ///
    /// # Safety
    /// The entry is empty and the caller's; the record stays until [`leave`](Self::leave) has
    /// returned.
    #[inline]
    pub(crate) unsafe fn enter(&self, record: &T) {
        let record = ptr::from_ref(record).cast_mut();
        // Release: pairs with the Acquire in `look`: the record is complete.
        self.record.store(record, Release);
    }

    /// Returns the address of the record, which may be gone, or null.
    #[inline]
    pub(crate) fn hint(&self) -> *const T {
        let record = self.record.load(Relaxed); // Relaxed: the caller only prefetches by it.
        record.map_addr(|record| record & !Self::CLAIMED)
    }

    /// Takes the record out, if there is one. Waits while it is looked at.
    #[inline]
    pub(crate) fn leave(&self, mut wait: impl FnMut(u32)) {
        // Relaxed: only its claim counts, and the exchange checks it.
        let record = self.record.load(Relaxed).map_addr(|r| r & !Self::CLAIMED);
        let mut round = 0;
        while !record.is_null() {
            // Acquire: pairs with the Release at the end of `look`, which has used the record.
            // Relaxed: nothing is concluded.
            let left = self
                .record
                .compare_exchange(record, ptr::null_mut(), Acquire, Relaxed);
            if left.is_ok() {
                return;
            }
            wait(round);
            round += 1;
        }
    }

    /// Calls `f` with the record, if there is one. `f` is short: the thread cannot end meanwhile,
    /// and its carrier would wait.
    ///
    /// # Errors
    /// Another looks at the record.
    #[inline]
    pub(crate) fn look<R>(&self, f: impl FnOnce(&T) -> R) -> Result<Option<R>, Busy> {
        // Relaxed: the exchange below checks it.
        let Some(record) = NonNull::new(self.record.load(Relaxed)) else {
            return Ok(None);
        };
        let record = record.as_ptr();
        let claimed = record.map_addr(|record| record | Self::CLAIMED);
        if claimed == record {
            return Err(Busy);
        }
        // Acquire: pairs with the Release in `enter`. Relaxed: see below.
        match self
            .record
            .compare_exchange(record, claimed, Acquire, Relaxed)
        {
            Ok(_) => {}
            Err(now) if now.is_null() => return Ok(None), // It has left.
            Err(_) => return Err(Busy), // Another looks at it, or at the next one already.
        }
        let _claim = Looking {
            entry: self,
            record,
        };
        // SAFETY: `leave` waits until the claim is given up, and the record stays until then.
        Ok(Some(f(unsafe { &*record })))
    }
}

/// Gives up the claim of an entry, also if its reader panics.
struct Looking<'a, T> {
    entry: &'a TableEntry<T>,
    record: *mut T,
}

impl<T> Drop for Looking<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `leave`, which ends the record.
        self.entry.record.store(self.record, Release);
    }
}
