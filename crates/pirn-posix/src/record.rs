//! The record of a virtual thread that `pthread_create` has made.
//!
//! It is the body of the thread's allocation. The `pthread_t` is the address of the TCB, in the
//! thread's slot, where a thread-local, [`RECORD`], leads back here: a look-up is one step.
//!
//! ```text
//!   pthread_t = TCB ----> slot: stack | ... RECORD ... | TCB
//!                                             |
//!                                             v
//!   allocation:  Core | Pthread: start, argument, result, joiner, ended
//! ```
//!
//! Two owners keep record and slot: the thread itself until it is reaped, and the right to join it
//! until a thread has joined or detached it. The last one gives both back. `joiner` is glibc's
//! `joinid`, and decides in the same way:
//!
//! ```text
//!   0                 joinable, no thread joins it
//!   its own address   detached
//!   another's         that thread is joining it; 0 again if it gives up at its deadline
//! ```

use crate::leaving;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::mem;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use libc::pthread_t;
use pirn_libc::identity::slot_of;
use pirn_libc::posix::{C11Routine, PosixRoutine, Record, Routine};
use pirn_libc::signals::delivery;
use pirn_libc::sync::robust;
use pirn_libc::virtual_thread;
use pirn_rt::arch;
use pirn_rt::blocking::futex;
use pirn_rt::blocking::parking_lot::{self, Parked};
use pirn_rt::blocking::wait::Outcome;
use pirn_rt::glibc::tls;
use pirn_rt::no_suspend::NoSuspend;
use pirn_rt::sched;
use pirn_rt::sched::body::Body;
use pirn_rt::sched::runtime::{self, Runtime};
use pirn_rt::sched::simulation;
use pirn_rt::sched::{life, safepoint};
use pirn_rt::stack::{SizeClass, Slot};
use pirn_rt::sys::{self, call, page_size};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use pirn_rt::vthread::wait_word::Interruptible;
use pirn_rt::vthread::{self, Claimed, Core, table};

thread_local! {
    /// In the TLS block of each thread that `pthread_create` has made virtual: its record. It is at
    /// the same distance from the thread pointer in each block, so others find it there.
    static RECORD: AtomicPtr<Pthread> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// Whether a thread has been cancelled, and whether it may be: see [`cancel`](crate::cancel).
pub(crate) struct Cancellation(AtomicU32);

impl Cancellation {
    pub(crate) const PENDING: u32 = 1;
    pub(crate) const DISABLED: u32 = 2;
    pub(crate) const ASYNCHRONOUS: u32 = 4;
    /// The thread is ending already.
    const ENDING: u32 = 8;

    const fn new() -> Cancellation {
        Cancellation(AtomicU32::new(0))
    }

    // SeqCst throughout: a canceller's bit and a thread's change of its state are in one order.

    pub(crate) fn is_asynchronous(&self) -> bool {
        self.0.load(Ordering::SeqCst) & Cancellation::ASYNCHRONOUS != 0
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.0.load(Ordering::SeqCst) & Cancellation::PENDING != 0
    }

    /// Returns whether the thread must act.
    pub(crate) fn is_due(&self) -> bool {
        let stops = Cancellation::DISABLED | Cancellation::ENDING;
        self.0.load(Ordering::SeqCst) & (Cancellation::PENDING | stops) == Cancellation::PENDING
    }

    /// Notes that the thread ends, and is not cancelled any more.
    pub(crate) fn end(&self) {
        self.0.fetch_or(Cancellation::ENDING, Ordering::SeqCst);
    }

    /// Sets or clears a bit. Returns what it was.
    pub(crate) fn change(&self, bit: u32, on: bool) -> c_int {
        let before = match on {
            true => self.0.fetch_or(bit, Ordering::SeqCst),
            false => self.0.fetch_and(!bit, Ordering::SeqCst),
        };
        c_int::from(before & bit != 0)
    }
}

/// See the module's documentation.
pub(crate) struct Pthread {
    routine: Routine,
    argument: *mut c_void,
    result: Cell<*mut c_void>,
    joiner: AtomicUsize,
    pub(crate) cancellation: Cancellation,
    /// 1 once the thread has ended; a futex word.
    ended: AtomicU32,
    /// The size of the guard that was asked for.
    pub(crate) guard: usize,
    /// Written by [`lay_out`](Self::lay_out), before other code has the record.
    place: Cell<Option<(NonNull<Core>, Slot)>>,
    class: SizeClass,
    runtime: &'static Runtime,
    /// The bytes above the slot's own guard that are inaccessible as well.
    more_guard: Cell<usize>,
}

impl Pthread {
    pub(crate) fn new(
        routine: Routine,
        argument: *mut c_void,
        guard: usize,
        class: SizeClass,
        runtime: &'static Runtime,
    ) -> Pthread {
        Pthread {
            routine,
            argument,
            result: Cell::new(ptr::null_mut()),
            joiner: AtomicUsize::new(0),
            cancellation: Cancellation::new(),
            ended: AtomicU32::new(0),
            guard,
            place: Cell::new(None),
            class,
            runtime,
            more_guard: Cell::new(0),
        }
    }

    /// Gives the thread its slot, and with it a `pthread_t`.
    ///
    /// # Safety
    /// `core` is the record's own, of a thread that has not started, with a reference that no
    /// other code releases: it becomes the right to join. The caller is alone with both.
    pub(crate) unsafe fn lay_out(&self, core: &Core) -> pthread_t {
        // SAFETY: the caller's contract.
        let slot = unsafe { life::preallocate(core) };
        self.place.set(Some((NonNull::from(core), slot)));
        slot.renew_tid();
        let record = ptr::from_ref(self).cast_mut();
        // SAFETY: the slot is this thread's.
        // Release: pairs with the Acquire in `find`.
        unsafe { place_of_record(slot.tp()) }.store(record, Ordering::Release);
        slot.pthread() as pthread_t
    }

    /// Lets others find the thread by its id, before its first mount too, when it can get signals.
    ///
    /// # Safety
    /// After [`lay_out`](Self::lay_out), once, of a thread that is about to be scheduled.
    pub(crate) unsafe fn enter(&self) {
        let (_, slot) = self.place();
        // SAFETY: it leaves when it is reaped, before its own reference is released.
        unsafe { table::enter(slot, self.core()) };
    }

    /// Returns what the runtime knows of it.
    pub(crate) fn core(&self) -> &Core {
        // SAFETY: there until the thread is joined, or detached and ended.
        unsafe { self.place().0.as_ref() }
    }

    fn place(&self) -> (NonNull<Core>, Slot) {
        match self.place.get() {
            Some(place) => place,
            None => sys::fatal(&["a thread of pthread_create has no slot"]),
        }
    }

    /// Makes the guard as large as asked for. Returns whether that could be done.
    ///
    /// # Safety
    /// As for [`lay_out`](Self::lay_out), after it.
    pub(crate) unsafe fn widen_guard(&self) -> bool {
        let (_, slot) = self.place();
        let own = slot.bottom() - slot.base();
        let more = self.guard.next_multiple_of(page_size()).saturating_sub(own);
        if more == 0 {
            return true;
        }
        // SAFETY: the lowest part of the thread's own stack, for which its size has allowed.
        let done = unsafe { call!(libc::SYS_mprotect, slot.bottom(), more, libc::PROT_NONE) };
        self.more_guard.set(if done.is_ok() { more } else { 0 });
        done.is_ok()
    }

    /// Returns its `pthread_t`, as a number.
    fn address(&self) -> usize {
        self.place().1.pthread()
    }

    /// Ends the thread's wait, if it is in one that interrupts end, and makes the next one end at
    /// once.
    pub(crate) fn interrupt(&self) {
        let (core, _) = self.place();
        let section = NoSuspend::new();
        let effect = self.core().wait.interrupt(Outcome::Interrupted as u32);
        if effect.ended.is_some() {
            // SAFETY: decided by us.
            sched::wake(unsafe { Claimed::new(core, section) });
        }
    }

    /// Releases the right to join.
    ///
    /// # Safety
    /// The caller has it, and does not use the record any more.
    unsafe fn release(&self) {
        // SAFETY: the reference that `lay_out` was given.
        unsafe { Core::release(self.place().0) };
    }

    /// Waits for the end of the thread, on either kind of thread.
    fn wait(&self, deadline: Deadline) -> Result<(), c_int> {
        const EVERY_BIT: u32 = u32::MAX;
        if deadline.is_never() && vthread::current().is_none() {
            sched::help_join(self.core());
        }
        let (key, id) = (self.ended.as_ptr().addr(), self.core().id());
        while !self.has_ended() {
            if deadline.has_passed() {
                return Err(libc::ETIMEDOUT);
            }
            if virtual_thread().is_none() {
                let sleep = || sys::futex_wait(&self.ended, 0, deadline);
                let _ = parking_lot::in_kernel(key, sleep);
                continue;
            }
            let reason = |_| WaitReason::new(Kind::Join, id);
            // SeqCst: in one order with the counting in `park` and the fence of the waker.
            let check = || self.ended.load(Ordering::SeqCst) == 0;
            // A join is a cancellation point.
            let interruptible = match own() {
                Some(_) => Interruptible::OnceInFutex,
                None => Interruptible::Never,
            };
            let parked = parking_lot::park(key, EVERY_BIT, deadline, interruptible, reason, check);
            match parked {
                Parked::Interrupted if own().is_some_and(|own| own.cancellation.is_due()) => {
                    return Err(libc::EINTR);
                }
                Parked::SafePoint => drop(safepoint::run_pending()),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Record for Pthread {
    unsafe fn join(
        &self,
        value: *mut *mut c_void,
        deadline: &dyn Fn() -> Result<Deadline, c_int>,
    ) -> c_int {
        let thread = self.address();
        if self.is_detached() {
            return libc::EINVAL;
        }
        // SAFETY: no arguments.
        let caller = unsafe { libc::pthread_self() } as usize;
        if caller == thread || own().is_some_and(|own| own.is_joined_by(thread as pthread_t)) {
            return libc::EDEADLK;
        }
        // Relaxed: only one can have the right; `has_ended` orders the result.
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        let joined = self.joiner.compare_exchange(0, caller, acquire, relaxed);
        if joined.is_err() {
            return libc::EINVAL;
        }
        let waited = match self.has_ended() {
            true => Ok(()),
            false => deadline().and_then(|deadline| self.wait(deadline)),
        };
        if let Err(error) = waited {
            // Release: pairs with the Acquire of the next joiner, which has the right from now on.
            self.joiner.store(0, Ordering::Release);
            return error;
        }
        let result = self.result.get();
        if let Some((core, _)) = self.place.get() {
            // SAFETY: the record is the body of its allocation, and has not been released.
            simulation::note_join(unsafe { core.as_ref() });
        }
        // SAFETY: the right is ours; the caller's contract.
        unsafe {
            self.release();
            if !value.is_null() {
                *value = result;
            }
        }
        0
    }

    fn is_joined_by(&self, thread: pthread_t) -> bool {
        // Relaxed: as in glibc, two threads that begin to join each other at the same time are
        // missed.
        self.joiner.load(Ordering::Relaxed) == thread as usize
    }

    unsafe fn detach(&self) -> c_int {
        let own = self.address();
        // Relaxed: the release of the right orders what its owner has done; see `ThreadRef`.
        let (relaxed, acquire) = (Ordering::Relaxed, Ordering::Acquire);
        match self.joiner.compare_exchange(0, own, acquire, relaxed) {
            Err(joiner) if joiner == own => libc::EINVAL,
            Err(_) => 0, // Another thread joins it.
            Ok(_) => {
                // SAFETY: the exchange has made the right ours.
                unsafe { self.release() };
                0
            }
        }
    }

    fn is_detached(&self) -> bool {
        // Relaxed: a program that acts on the answer has ordered the end itself.
        self.joiner.load(Ordering::Relaxed) == self.address()
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) != 0 // Acquire: pairs with the exchange in `ended`.
    }

    fn stack(&self, slot: Slot) -> (usize, usize) {
        (slot.bottom() + self.more_guard.get(), self.guard)
    }

    fn exit_with(&self, value: *mut c_void) {
        self.cancellation.end();
        self.result.set(value);
    }
}

impl Body for Pthread {
    fn code() -> &'static str {
        "the start routine of a pthread_create"
    }

    unsafe fn run(&self) {
        // SAFETY: the program's own routine and argument; the TCB is complete.
        unsafe {
            match self.routine {
                Routine::Posix(start) => {
                    arch::call_as_pthread(start, self.argument, self.result.as_ptr());
                }
                Routine::C11(start) => {
                    // Only 32 bits of what comes as a pointer mean anything.
                    let start = mem::transmute::<C11Routine, PosixRoutine>(start);
                    arch::call_as_pthread(start, self.argument, self.result.as_ptr());
                    let number = self.result.get() as usize as c_int;
                    self.result.set(number as isize as *mut c_void);
                }
            }
            if vthread::current().is_some_and(|core| core.signals.any_pending()) {
                delivery::at_once(); // A signal that came before the end is not lost with the thread.
            }
            run_destructors();
            if let Some(core) = vthread::current() {
                // It takes no more signals of the process. Relaxed: the join orders it.
                core.signals.mask.store(u64::MAX, Ordering::Relaxed);
            }
        }
    }

    unsafe fn abandon(&self) {}

    unsafe fn drop_result(&self) {}

    unsafe fn ended(&self) {
        robust::owner_dies();
        self.place().1.forget_tid();
        let word = self.ended.as_ptr();
        // SeqCst, and an exchange: in one order with the waiters' checks, as a wake asks for.
        self.ended.swap(1, Ordering::SeqCst);
        futex::wake_waiters(word, c_int::MAX);
        leaving::leave();
    }
}

impl Drop for Pthread {
    fn drop(&mut self) {
        let (_, slot) = self.place();
        // SAFETY: the thread has been reaped, and no thread can join it any more.
        unsafe {
            // Relaxed: only a program that uses a `pthread_t` too long reads it.
            place_of_record(slot.tp()).store(ptr::null_mut(), Ordering::Relaxed);
            if self.more_guard.get() > 0 {
                let (start, len) = (slot.bottom(), self.more_guard.get());
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let _ = call!(libc::SYS_mprotect, start, len, access);
            }
            life::release_preallocated(slot, self.class, self.runtime);
        }
    }
}

/// Runs the destructors of the running thread's data. If one of them calls `pthread_exit`, the
/// others follow, as in glibc.
///
/// # Safety
/// The TCB is complete.
unsafe fn run_destructors() {
    /// Returns its argument, which is not null.
    unsafe extern "C-unwind" fn run_all(done: *mut c_void) -> *mut c_void {
        sched::run_destructors();
        done
    }
    let mut done = ptr::null_mut::<c_void>();
    while done.is_null() {
        let argument = ptr::without_provenance_mut(1);
        // SAFETY: the caller's contract. An exit unwinds to this call, and leaves `done` null.
        unsafe { arch::call_as_pthread(run_all, argument, &mut done) };
    }
}

/// Returns the place of [`RECORD`] in the TLS block at `tp`.
///
/// # Safety
/// `tp` is the thread pointer of a slot.
unsafe fn place_of_record<'a>(tp: usize) -> &'a AtomicPtr<Pthread> {
    // SAFETY: the caller's contract. The memory of a slot that no thread uses is there as well.
    unsafe { &*tls::place_of(&RECORD, tp) }
}

/// Returns the record of the running thread, if `pthread_create` has made it.
pub(crate) fn own<'a>() -> Option<&'a Pthread> {
    // SAFETY: a thread's record outlives it. Relaxed: written before the thread began.
    RECORD.with(|record| unsafe { record.load(Ordering::Relaxed).as_ref() })
}

/// Forgets that the running thread, which has forked, was virtual.
pub(crate) fn after_fork() {
    RECORD.with(|record| record.store(ptr::null_mut(), Ordering::Relaxed)); // Relaxed: its own.
}

/// Returns the record of a thread, if it is a virtual one that `pthread_create` has made.
pub(crate) fn find<'a>(thread: pthread_t) -> Option<&'a Pthread> {
    if !runtime::is_started() {
        return None;
    }
    let slot = slot_of(thread)?;
    // SAFETY: the thread pointer of a slot. Acquire: pairs with the Release in `lay_out`; the
    // program passes the `pthread_t` of a thread that exists, and so does its record.
    unsafe { place_of_record(slot.tp()).load(Ordering::Acquire).as_ref() }
}
