//! Carriers: the platform threads that virtual threads are mounted on, and the table in which
//! others find them.

use super::cpu_time::Meter;
use super::mount::After;
use super::processor::{Acquired, Holder, Processor};
use super::runtime::Runtime;
use crate::arch;
use crate::continuation::Continuation;
use crate::glibc::malloc;
use crate::no_suspend::NoSuspend;
use crate::recorder;
use crate::recorder::carrier_ring::Writer;
use crate::sanitizer::{self, Ignored};
use crate::sys::{self, Errno};
use crate::vthread::{Core, Ready, current, overflow};
use core::cell::Cell;
use core::mem::{MaybeUninit, offset_of};
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

thread_local! {
    /// The carrier of this platform thread, while it is one.
    static CARRIER: Cell<*const Carrier> = const { Cell::new(ptr::null()) };
}

/// A platform thread that virtual threads are mounted on.
pub struct Carrier {
    /// Its own stack and TLS.
    pub(super) native: Continuation,
    /// The thread that was switched away from, and the action to take for it.
    pub(super) left: Cell<Option<(NonNull<Core>, After)>>,
    /// The thread that last came back to `native` by a yield, until another is mounted from there.
    /// It is compared only, never followed: the thread may have ended elsewhere.
    pub(super) yielded: Cell<Option<NonNull<Core>>>,
    /// The runtime whose threads the carrier runs.
    runtime: Cell<&'static Runtime>,
    /// The processor that the carrier holds; none while it runs threads of a user's scheduler.
    processor: Cell<Option<Acquired>>,
    /// The processor that is reserved for the one thread that a joining platform thread carries.
    reserved: Cell<Option<&'static Processor>>,
    /// Whether the threads that the carrier makes runnable are urgent: it looks for events because
    /// a thread has been preempted for them.
    urgently: Cell<bool>,
    /// The signals that the platform thread blocked when it became a carrier.
    blocked_signals: u64,
    /// Tells readers outside which thread is mounted.
    pub(super) mounted: Mounted,
    /// The carrier's number, for observers.
    pub(crate) number: u32,
    /// The right to write its ring of events, once it has asked for it.
    writer: Cell<Option<Writer>>,
}

impl Carrier {
    /// Makes the running platform thread a carrier of `runtime`.
    pub(crate) fn new(number: u32, runtime: &'static Runtime) -> Carrier {
        malloc::ensure_cache();
        overflow::ensure_signal_stack();
        sanitizer::note_carrier();
        Carrier {
            native: Continuation::native(),
            left: Cell::new(None),
            yielded: Cell::new(None),
            runtime: Cell::new(runtime),
            processor: Cell::new(None),
            reserved: Cell::new(None),
            urgently: Cell::new(false),
            blocked_signals: sys::blocked_signals(),
            mounted: Mounted::new(number),
            number,
            writer: Cell::new(None),
        }
    }

    /// Returns the carrier on which a thread is mounted.
    ///
    /// # Safety
    /// The thread is mounted: the caller is on it, or on its carrier, which does not leave it as
    /// long as the reference is used.
    #[inline(always)]
    pub(super) unsafe fn of(thread: &Core) -> &Carrier {
        // SAFETY: set by `take_over`; a carrier lives as long as it carries.
        unsafe { &*thread.carrier.get().cast() }
    }

    /// Makes this the running platform thread's carrier, for threads of `runtime`, for the duration
    /// of `f`.
    pub(crate) fn enter<R>(&self, runtime: &'static Runtime, f: impl FnOnce() -> R) -> R {
        let _ignored = Ignored::new();
        let outer = CARRIER.replace(self);
        let outer_runtime = self.runtime.replace(runtime);
        let result = f();
        self.runtime.set(outer_runtime);
        CARRIER.set(outer);
        result
    }

    /// Returns the runtime whose threads the carrier runs.
    #[inline]
    pub fn runtime(&self) -> &'static Runtime {
        self.runtime.get()
    }

    /// Returns the processor that the carrier holds.
    #[inline(always)]
    pub fn processor(&self) -> Option<Holder<'_>> {
        // SAFETY: only this platform thread uses the cell, and not meanwhile.
        unsafe { &*self.processor.as_ptr() }
            .as_ref()
            .map(Acquired::holder)
    }

    /// Holds `processor` from now on.
    #[inline]
    pub(crate) fn hold(&self, processor: Acquired) {
        let other = self.processor.replace(Some(processor));
        debug_assert!(other.is_none(), "a processor is lost");
    }

    /// Gives up the processor that the carrier holds.
    ///
    /// # Safety
    /// No [`Holder`] from this carrier is used any more.
    #[inline]
    pub(crate) unsafe fn let_go(&self) -> Option<Acquired> {
        self.processor.take()
    }

    /// Carries `thread`, on a platform thread that waits for it, for as long as it does not park.
    ///
    /// # Safety
    /// The contract of [`mount`](Self::mount).
    #[inline]
    pub(crate) unsafe fn mount_reserved(&self, thread: Ready, processor: Holder<'_>) {
        self.reserved.set(Some(processor.get()));
        // SAFETY: the caller's contract.
        unsafe { self.mount(thread) };
        self.reserved.set(None);
    }

    /// Returns the right to write the carrier's ring of events, if there is one.
    #[inline(always)]
    pub(super) fn writer(&self) -> Option<Writer> {
        self.writer.get().or_else(|| self.find_writer())
    }

    #[cold]
    fn find_writer(&self) -> Option<Writer> {
        // SAFETY: only the carrier itself asks; one with a ring never ends.
        let writer = unsafe { recorder::writer(self.number, ptr::from_ref(self).addr()) };
        self.writer.set(writer);
        writer
    }

    /// Returns the processor that the running thread occupies: the carrier's, or the one that is
    /// reserved for the thread. `None`: a scheduler of the program runs the thread.
    #[inline]
    pub(crate) fn occupied(&self) -> Option<Holder<'_>> {
        // SAFETY: the caller of `mount_reserved` holds the other one.
        self.processor()
            .or_else(|| self.reserved.get().map(|it| unsafe { Holder::new(it) }))
    }

    /// Returns what tells readers outside which thread is mounted.
    #[inline]
    pub(super) fn mounted(&self) -> &Mounted {
        &self.mounted
    }

    /// Calls `f`. The threads of this carrier's runtime that it makes runnable are urgent.
    ///
    /// They are not enqueued on the processor, which the carrier gives up for the time being.
    #[inline]
    pub(crate) fn urgently(&self, f: impl FnOnce()) {
        let processor = self.processor.take();
        self.urgently.set(true);
        f();
        self.urgently.set(false);
        self.processor.set(processor);
    }

    /// Sets whether the threads that the carrier makes runnable from now on are urgent. The carrier
    /// has no processor.
    #[inline]
    pub(crate) fn set_urgent(&self, urgent: bool) {
        self.urgently.set(urgent);
    }

    /// Returns whether threads that are made runnable now are [urgent](Self::urgently).
    #[inline]
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgently.get()
    }

    /// Returns the signals that the platform thread blocked when it became a carrier: bit `n - 1`
    /// for signal `n`.
    #[inline]
    pub fn blocked_signals(&self) -> u64 {
        self.blocked_signals
    }

    /// Returns the thread pointer of the platform thread.
    #[inline]
    pub fn native_tp(&self) -> usize {
        self.native.tp()
    }
}

/// Returns the carrier of the running code, which is a virtual thread or the carrier's own loop.
///
/// The section keeps the thread on this carrier for as long as the reference lives. Do not
/// [`suspend`](super::mount::suspend) either while it lives: the thread may continue on another
/// carrier.
#[inline(always)]
pub fn carrier(_: &NoSuspend) -> Option<&Carrier> {
    let pointer = match current() {
        Some(thread) => thread.carrier.get().cast(),
        None => CARRIER.with(Cell::get),
    };
    // SAFETY: a carrier lives as long as it carries.
    unsafe { pointer.as_ref() }
}

/// Calls `f` with the TLS of the carrier: to `f` this is the platform thread, which it may block.
/// On a platform thread, just calls it.
///
/// # Safety
/// `f` does not unwind.
#[inline]
pub unsafe fn on_carrier<R>(f: impl FnOnce() -> R) -> R {
    // A platform thread enters no section: `f` may take long.
    let section = current().map(|_| NoSuspend::new());
    match section.as_ref().and_then(carrier) {
        // SAFETY: the carrier of the running thread; the caller's contract.
        Some(carrier) => unsafe { call_natively(carrier.native_tp(), f) },
        None => f(),
    }
}

/// Calls `function` with the thread pointer of the current platform thread. `function` runs as on a
/// platform thread: if it blocks, it blocks the carrier. `errno` is carried over.
///
/// # Safety
/// `native_tp` is the thread pointer of the platform thread that carries the running virtual
/// thread. `function` does not unwind.
unsafe fn call_natively<R>(native_tp: usize, function: impl FnOnce() -> R) -> R {
    struct TlsCall<F, R> {
        function: MaybeUninit<F>,
        result: MaybeUninit<R>,
        errno: i32,
    }
    unsafe extern "C" fn run<F: FnOnce() -> R, R>(call: *mut u8) {
        // SAFETY: called once, with the call below.
        unsafe {
            let call = &mut *call.cast::<TlsCall<F, R>>();
            call.result.write(call.function.assume_init_read()());
            call.errno = sys::errno();
        }
    }
    fn runner<F: FnOnce() -> R, R>(_: &TlsCall<F, R>) -> unsafe extern "C" fn(*mut u8) {
        run::<F, R>
    }
    let own = arch::thread_pointer();
    let mut call = TlsCall {
        function: MaybeUninit::new(function),
        result: MaybeUninit::uninit(),
        errno: 0,
    };
    let run = runner(&call);
    // SAFETY: both blocks are this OS thread's; nothing in `function` can suspend, because it runs
    // as a platform thread.
    unsafe {
        if sanitizer::switches_are_special() {
            call_announced(own, native_tp, run, (&raw mut call).cast());
        } else {
            malloc::hand_over(own, native_tp);
            arch::call_with_tp_by_instruction(native_tp, run, (&raw mut call).cast());
            malloc::hand_over(native_tp, own);
        }
    }
    sys::set_errno(Errno(call.errno));
    // SAFETY: written by `run`.
    unsafe { call.result.assume_init() }
}

/// Calls `run(data)` with the thread pointer `native_tp`, and tells the sanitizer.
///
/// # Safety
/// As for [`call_natively`]; `own` is the running thread pointer.
#[cold]
#[inline(never)]
unsafe fn call_announced(
    own: usize,
    native_tp: usize,
    run: unsafe extern "C" fn(*mut u8),
    data: *mut u8,
) {
    // SAFETY: the caller's contract.
    unsafe {
        malloc::hand_over_found(own, native_tp);
        let lent = sanitizer::lend(own, native_tp);
        arch::call_with_tp(native_tp, run, data);
        sanitizer::take_back(native_tp, lent);
        malloc::hand_over_found(native_tp, own);
    }
}

/// The layout of the carriers' entries, for readers outside of the process.
pub const LAYOUT: [(&str, usize); 6] = [
    ("carriers.count", CARRIERS),
    ("carriers.reach", REACH),
    ("carriers.stride", size_of::<CarrierEntry>()),
    ("carriers.tid", offset_of!(CarrierEntry, platform)),
    ("carriers.number", offset_of!(CarrierEntry, number)),
    ("carriers.thread", offset_of!(CarrierEntry, thread)),
];

/// The number of entries. Some tens of platform threads are carriers, but each platform thread that
/// joins a virtual thread may be one as well.
const CARRIERS: usize = 1024;
/// The number of places where the entry of a platform thread may be.
const REACH: usize = 16;

/// What other threads, and readers outside of the process, may know of a carrier.
#[repr(C, align(64))]
struct CarrierEntry {
    platform: AtomicU32,
    number: AtomicU32,
    thread: AtomicPtr<Core>,
    meter: Meter,
}

impl CarrierEntry {
    const fn new() -> CarrierEntry {
        CarrierEntry {
            platform: AtomicU32::new(0),
            number: AtomicU32::new(0),
            thread: AtomicPtr::new(ptr::null_mut()),
            meter: Meter::new(),
        }
    }
}

static MOUNTED: [CarrierEntry; CARRIERS] = [const { CarrierEntry::new() }; CARRIERS];

/// The entry of all carriers that find no free place. No reader finds it.
static UNLISTED: CarrierEntry = CarrierEntry::new();

/// Returns the address of the entries of carriers.
#[inline]
pub const fn mounted() -> *const () {
    (&raw const MOUNTED).cast()
}

/// What an entry says.
#[derive(Clone, Copy)]
pub struct Carrying {
    pub platform: u32,
    pub number: u32,
    /// Whether a thread is mounted.
    pub busy: bool,
    pub(super) meter: &'static Meter,
}

/// Returns all platform threads that are carriers. The answer may be outdated at once.
#[inline]
pub fn carriers() -> impl Iterator<Item = Carrying> {
    let entries = MOUNTED.iter().map(|entry| Carrying {
        platform: entry.platform.load(Relaxed), // Relaxed, all: may be outdated at once.
        number: entry.number.load(Relaxed),
        busy: !entry.thread.load(Relaxed).is_null(),
        meter: &entry.meter,
    });
    entries.filter(|entry| entry.platform != 0)
}

/// Returns the platform thread of the carrier with this number.
#[inline]
pub fn platform_of(number: u32) -> Option<u32> {
    carrying(number).map(|entry| entry.platform)
}

/// Returns the carrier with this number.
#[inline]
pub fn carrying(number: u32) -> Option<Carrying> {
    carriers().find(|entry| entry.number == number)
}

/// The entry of a carrier, for as long as it is one.
pub(super) struct Mounted(&'static CarrierEntry);

impl Mounted {
    /// Takes an entry for the running platform thread, as the carrier with this number.
    fn new(number: u32) -> Mounted {
        // SAFETY: no arguments.
        let platform = unsafe { sys::call!(libc::SYS_gettid) }.unwrap_or(0) as u32;
        let places = (0..REACH).map(|step| &MOUNTED[(platform as usize + step) % CARRIERS]);
        // A place is one thread's once its id is there, and only that one writes to it. Acquire:
        // pairs with the Release in `drop`, so that the last thread's writes are before ours.
        let mut free = places.filter(|entry| {
            let id = &entry.platform;
            id.compare_exchange(0, platform, Acquire, Relaxed).is_ok()
        });
        let entry = free.next().unwrap_or(&UNLISTED);
        entry.number.store(number, Relaxed); // Relaxed: for readers outside.
        entry.meter.reset();
        Mounted(entry)
    }

    /// Notes the thread that is mounted from now on; null: no thread.
    #[inline(always)]
    pub(super) fn set(&self, thread: *const Core) {
        self.0.thread.store(thread.cast_mut(), Relaxed); // Relaxed: for readers outside.
    }

    /// Returns the meter, if this platform thread has one to itself.
    #[inline]
    pub(super) fn meter(&self) -> Option<&'static Meter> {
        (!ptr::eq(self.0, &UNLISTED)).then_some(&self.0.meter)
    }

    /// Returns the thread that is mounted.
    #[inline]
    pub(super) fn get(&self) -> *const Core {
        self.0.thread.load(Relaxed) // Relaxed: this platform thread's own.
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.set(ptr::null());
        if !ptr::eq(self.0, &UNLISTED) {
            self.0.platform.store(0, Release); // Release: pairs with the Acquire in `new`.
        }
    }
}

/// Forgets the carriers of the parent, in the child of a fork that has no runtime yet.
pub(crate) fn after_fork() {
    for entry in &MOUNTED {
        // Relaxed, all: for readers outside.
        if entry.platform.load(Relaxed) != 0 {
            entry.platform.store(0, Relaxed);
            entry.thread.store(ptr::null_mut(), Relaxed);
        }
    }
}
