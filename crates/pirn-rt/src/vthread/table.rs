//! The thread table.

use super::Ready;
use super::cpu_time::Meter;
use super::record::Core;
use super::state::{Busy, TableEntry};
#[cfg(feature = "dump")]
use crate::arch;
use crate::mark::Raised;
use crate::stack::Slot;
use crate::stack::region::{MAX_REGIONS, MAX_SLOTS};
use crate::{sched, sys};
use core::mem::offset_of;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

/// The entries of one region's slots.
type Table = [TableEntry<Core>; MAX_SLOTS];

/// Made when the first thread enters; never freed.
static TABLES: [AtomicPtr<Table>; MAX_REGIONS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_REGIONS];

/// The layout of the tables, for readers outside of the process. The table of a region has one
/// word per slot.
pub const LAYOUT: [(&str, usize); 7] = [
    ("residents.flags", TableEntry::<Core>::CLAIMED),
    ("carriers.count", CARRIERS),
    ("carriers.reach", REACH),
    ("carriers.stride", size_of::<CarrierEntry>()),
    ("carriers.tid", offset_of!(CarrierEntry, platform)),
    ("carriers.number", offset_of!(CarrierEntry, number)),
    ("carriers.thread", offset_of!(CarrierEntry, thread)),
];

/// Returns the address of the tables' addresses, by region.
#[inline]
pub const fn tables() -> *const () {
    (&raw const TABLES).cast()
}

#[inline]
fn table(slot: Slot) -> Option<&'static Table> {
    // Acquire: pairs with the Release in `make_table`.
    let table = TABLES[slot.region()].load(Acquire);
    // SAFETY: published, and never freed.
    unsafe { table.as_ref() }
}

/// Makes the table of a slot's region; `None` if there is no memory.
#[cold]
fn make_table(slot: Slot) -> Option<&'static Table> {
    let place = &TABLES[slot.region()];
    let bytes = size_of::<Table>();
    let new = sys::map(bytes, 0).ok()? as *mut Table; // zeros: empty entries
    let (null, release, acquire) = (ptr::null_mut(), Release, Acquire);
    // Release: the zeros; Acquire: another's table.
    let table = match place.compare_exchange(null, new, release, acquire) {
        Ok(_) => new,
        Err(other) => {
            // SAFETY: our own mapping, which nobody else knows.
            let _ = unsafe { sys::call!(libc::SYS_munmap, new, bytes) };
            other
        }
    };
    // SAFETY: published, and never freed.
    unsafe { table.as_ref() }
}

/// Enters the thread that has been given a slot. Without memory for a table, nobody will find it.
///
/// # Safety
/// The record stays until [`leave`] has returned.
#[inline]
pub(super) unsafe fn enter(slot: Slot, core: &Core) {
    if let Some(table) = table(slot).or_else(|| make_table(slot)) {
        // SAFETY: the slot is this thread's; the caller's contract.
        unsafe { table[slot.index()].enter(core) };
    }
}

/// Takes out the thread that is about to give its slot back. Waits while it is looked at.
#[inline]
pub(super) fn leave(slot: Slot) {
    if let Some(table) = table(slot) {
        table[slot.index()].leave(sys::back_off);
    }
}

/// Calls `f` with the thread in a slot, if there is one and nobody else looks at it. `f` is short:
/// the thread cannot end meanwhile, and its carrier would wait.
pub fn look<R>(slot: Slot, f: impl FnOnce(&Core) -> R) -> Option<R> {
    table(slot)?[slot.index()].look(f).ok().flatten()
}

/// Calls `f` with the thread in a slot, if there is one. Waits while another looks at it. `f` is as
/// short as in [`look`]; it may wake the thread. No handler of a signal may run meanwhile on this
/// platform thread that does the same.
pub fn visit<R>(slot: Slot, f: impl FnOnce(&Core) -> R) -> Option<R> {
    let entry = &table(slot)?[slot.index()];
    let mut f = Some(f);
    for round in 0.. {
        match entry.look(|core| f.take().map(|f| f(core))) {
            Ok(result) => return result.flatten(),
            Err(Busy) => sys::back_off(round),
        }
    }
    None
}

/// Calls `f` with the thread in a slot, if there is one, and with whether the thread is parked and
/// stays so meanwhile: then its stack, and all that belongs to a thread that runs, may be read.
///
/// Waits while another looks at the thread. `f` is as short as in [`look`]: a thread that is woken
/// meanwhile is enqueued when `f` returns. It is not called from a signal handler.
pub fn walk<R>(slot: Slot, f: impl FnOnce(&Core, bool) -> R) -> Option<R> {
    let entry = &table(slot)?[slot.index()];
    let _mark = Raised::new();
    let mut f = Some(f);
    // Enqueued when nobody looks at it any more: its scheduler may be the program's.
    let mut woken = Woken(None);
    for round in 0.. {
        let looked = entry.look(|core| {
            let walked = Walked::begin(core, &mut woken);
            f.take().map(|f| f(core, walked.parked))
        });
        match looked {
            Ok(result) => return result.flatten(),
            Err(Busy) => sys::back_off(round),
        }
    }
    None
}

/// Has the processor fetch the record of the thread in a slot.
#[cfg(feature = "dump")]
#[inline]
pub fn fetch_record(slot: Slot) {
    let record = table(slot).map_or(0, |table| table[slot.index()].hint().addr());
    arch::prefetch(record, 3);
}

/// Has the processor fetch the stack of the thread in a slot, if that has left it.
#[cfg(feature = "dump")]
pub fn fetch_stack(slot: Slot) {
    /// Of most threads that wait, in lines: the frames are in some hundred bytes.
    const LINES: usize = 8;
    let record = table(slot).map_or(0, |table| table[slot.index()].hint().addr());
    if record != 0 {
        // SAFETY: the handler of faults is in place, as there has been a thread. The record may be
        // gone, and what is read any number: only the processor's cache gets to know.
        let sp = unsafe { arch::fetch_u64(record + Core::SAVED_SP) };
        arch::prefetch(sp.value as usize, LINES);
    }
}

/// The right to run a thread that was woken while it was walked. Enqueues it in the end.
struct Woken(Option<Ready>);

impl Drop for Woken {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            sched::make_runnable(thread);
        }
    }
}

/// Keeps a thread parked while it is looked at, if it was.
struct Walked<'a> {
    core: &'a Core,
    parked: bool,
    woken: &'a mut Woken,
}

impl<'a> Walked<'a> {
    fn begin(core: &'a Core, woken: &'a mut Woken) -> Walked<'a> {
        let parked = core.handshake.begin_walk();
        Walked {
            core,
            parked,
            woken,
        }
    }
}

impl Drop for Walked<'_> {
    fn drop(&mut self) {
        if self.parked && !self.core.handshake.end_walk() {
            // SAFETY: the handshake gave us the duty to enqueue it.
            self.woken.0 = Some(unsafe { Ready::new(NonNull::from(self.core)) });
        }
    }
}

/// Forgets the threads of the parent, in the child of a fork that has no runtime yet: entries may
/// have been claimed by others, so there will be new tables.
#[inline]
pub fn after_fork() {
    for entry in &MOUNTED {
        // Relaxed, all: for readers outside.
        if entry.platform.load(Relaxed) != 0 {
            entry.platform.store(0, Relaxed);
            entry.thread.store(ptr::null_mut(), Relaxed);
        }
    }
    for table in &TABLES {
        // Relaxed, both: there is no runtime yet.
        if !table.load(Relaxed).is_null() {
            table.store(ptr::null_mut(), Relaxed);
        }
    }
}

/// Returns whether there is a thread in a slot, or was a moment ago.
#[inline]
pub fn is_resident(slot: Slot) -> bool {
    table(slot).is_some_and(|table| !table[slot.index()].is_empty())
}

/// Returns the bytes of the tables.
#[inline]
pub fn bytes() -> usize {
    let made = |table: &&AtomicPtr<Table>| !table.load(Relaxed).is_null();
    TABLES.iter().filter(made).count() * size_of::<Table>() // Relaxed: as above.
}

/// The number of entries. Platform threads that carry are some tens, but each one that joins a
/// virtual thread may be among them.
const CARRIERS: usize = 1024;
/// The number of places where the entry of a platform thread may be.
const REACH: usize = 16;

/// See the module's documentation.
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

/// The entry of those for whom there is no place. It is never said to be anybody's.
static NOBODYS: CarrierEntry = CarrierEntry::new();

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

/// Returns all platform threads that carry, as they are a moment ago.
#[inline]
pub fn carriers() -> impl Iterator<Item = Carrying> {
    let entries = MOUNTED.iter().map(|entry| Carrying {
        platform: entry.platform.load(Relaxed), // Relaxed, all three: hints.
        number: entry.number.load(Relaxed),
        busy: !entry.thread.load(Relaxed).is_null(),
        meter: &entry.meter,
    });
    entries.filter(|entry| entry.platform != 0)
}

/// Returns the platform thread of the carrier with this number.
#[inline]
pub fn platform_of(number: u32) -> Option<u32> {
    carrier(number).map(|entry| entry.platform)
}

/// Returns the carrier with this number.
#[inline]
pub fn carrier(number: u32) -> Option<Carrying> {
    carriers().find(|entry| entry.number == number)
}

/// The entry of a carrier, for as long as it is one.
pub(super) struct Mounted(&'static CarrierEntry);

impl Mounted {
    /// Takes an entry for the running platform thread, as the carrier with this number.
    pub(super) fn new(number: u32) -> Mounted {
        // SAFETY: no arguments.
        let platform = unsafe { sys::call!(libc::SYS_gettid) }.unwrap_or(0) as u32;
        let places = (0..REACH).map(|step| &MOUNTED[(platform as usize + step) % CARRIERS]);
        // Relaxed: a place is one thread's once its id is there, and only that one writes to it.
        let mut free = places.filter(|entry| {
            let id = &entry.platform;
            id.compare_exchange(0, platform, Relaxed, Relaxed).is_ok()
        });
        let entry = free.next().unwrap_or(&NOBODYS);
        entry.number.store(number, Relaxed); // Relaxed: for readers outside.
        entry.meter.reset();
        Mounted(entry)
    }

    /// Notes the thread that is mounted from now on; null: none.
    #[inline(always)]
    pub(super) fn set(&self, thread: *const Core) {
        self.0.thread.store(thread.cast_mut(), Relaxed); // Relaxed: for readers outside.
    }

    /// Returns the meter, if this platform thread has one to itself.
    #[inline]
    pub(super) fn meter(&self) -> Option<&'static Meter> {
        (!ptr::eq(self.0, &NOBODYS)).then_some(&self.0.meter)
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
        if !ptr::eq(self.0, &NOBODYS) {
            self.0.platform.store(0, Relaxed); // Relaxed: for readers outside.
        }
    }
}
