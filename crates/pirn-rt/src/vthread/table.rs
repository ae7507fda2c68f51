//! The thread table: finds the record of the thread in a slot.

use super::Ready;
use super::record::Core;
use super::state::{Busy, TableEntry};
#[cfg(feature = "dump")]
use crate::arch;
use crate::no_suspend::NoSuspend;
use crate::stack::Slot;
use crate::stack::region::{MAX_REGIONS, MAX_SLOTS};
use crate::sys;
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The entries of one region's slots.
type Table = [TableEntry<Core>; MAX_SLOTS];

/// Made when the first thread enters; never freed.
static TABLES: [AtomicPtr<Table>; MAX_REGIONS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_REGIONS];

/// The layout of the tables, for readers outside of the process. The table of a region has one
/// word per slot.
pub const LAYOUT: [(&str, usize); 1] = [("threads.flags", TableEntry::<Core>::CLAIMED)];

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
    // Release: publishes the zeros. Acquire: the table of another thread that was faster.
    let table = match place.compare_exchange(null, new, release, acquire) {
        Ok(_) => new,
        Err(other) => {
            // SAFETY: our own mapping, which no other code knows.
            let _ = unsafe { sys::call!(libc::SYS_munmap, new, bytes) };
            other
        }
    };
    // SAFETY: published, and never freed.
    unsafe { table.as_ref() }
}

/// Enters the thread that has been given a slot, where others find it until it is reaped. Without
/// memory for a table, none will.
///
/// # Safety
/// The thread has not been entered. The record stays until `leave` has returned.
#[inline]
pub unsafe fn enter(slot: Slot, core: &Core) {
    if let Some(table) = table(slot).or_else(|| make_table(slot)) {
        // SAFETY: the slot is this thread's; the caller's contract.
        unsafe { table[slot.index()].enter(core) };
    }
}

/// Takes out the thread that is about to give its slot back. Waits while it is looked at.
#[inline]
pub(crate) fn leave(slot: Slot) {
    if let Some(table) = table(slot) {
        table[slot.index()].leave(sys::back_off);
    }
}

/// Calls `f` with the thread in a slot, if there is one and no other reader looks at it. `f` is
/// short: the thread cannot end meanwhile, and its carrier would wait.
pub fn look<R>(slot: Slot, f: impl FnOnce(&Core) -> R) -> Option<R> {
    table(slot)?[slot.index()].look(f).ok().flatten()
}

/// Calls `f` with the thread in a slot, if there is one. Waits while another reader looks at it.
/// `f` is as short as in [`look`]; it may wake the thread. Meanwhile no signal handler that visits
/// a thread may run on this platform thread.
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
/// meanwhile is passed to `enqueue` when `f` has returned. It is not called from a signal handler.
pub(crate) fn inspect<R>(
    slot: Slot,
    f: impl FnOnce(&Core, bool) -> R,
    enqueue: impl FnMut(Ready),
) -> Option<R> {
    let entry = &table(slot)?[slot.index()];
    let _section = NoSuspend::new();
    let mut f = Some(f);
    // Enqueued when no reader looks at it any more: its scheduler may be the program's.
    let mut woken = Woken(None, enqueue);
    for round in 0.. {
        let looked = entry.look(|core| {
            let inspected = Inspected::begin(core, &mut woken.0);
            f.take().map(|f| f(core, inspected.parked))
        });
        match looked {
            Ok(result) => return result.flatten(),
            Err(Busy) => sys::back_off(round),
        }
    }
    None
}

/// Makes the processor prefetch the record of the thread in a slot.
#[cfg(feature = "dump")]
#[inline]
pub fn fetch_record(slot: Slot) {
    let record = table(slot).map_or(0, |table| table[slot.index()].hint().addr());
    arch::prefetch(record, 3);
}

/// Makes the processor prefetch the stack of the thread in a slot, upwards from where the stack
/// pointer was when the thread last left its stack.
#[cfg(feature = "dump")]
pub fn fetch_stack(slot: Slot) {
    /// The number of cache lines: the frames of most waiting threads take some hundred bytes.
    const LINES: usize = 8;
    let record = table(slot).map_or(0, |table| table[slot.index()].hint().addr());
    if record != 0 {
        // SAFETY: the handler of faults is in place, as there has been a thread. The record may be
        // gone, and the word that is read may be any number: it only chooses what is prefetched.
        let sp = unsafe { arch::fetch_u64(record + Core::SAVED_SP) };
        arch::prefetch(sp.value as usize, LINES);
    }
}

/// The right to run a thread that was woken while it was inspected. Enqueues it in the end.
struct Woken<F: FnMut(Ready)>(Option<Ready>, F);

impl<F: FnMut(Ready)> Drop for Woken<F> {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            (self.1)(thread);
        }
    }
}

/// Keeps a thread that is parked in this state while a reader looks at it.
struct Inspected<'a> {
    core: &'a Core,
    parked: bool,
    woken: &'a mut Option<Ready>,
}

impl<'a> Inspected<'a> {
    fn begin(core: &'a Core, woken: &'a mut Option<Ready>) -> Inspected<'a> {
        let parked = core.handshake.begin_inspection();
        Inspected {
            core,
            parked,
            woken,
        }
    }
}

impl Drop for Inspected<'_> {
    fn drop(&mut self) {
        if self.parked && !self.core.handshake.end_inspection() {
            // SAFETY: the handshake gave us the duty to enqueue it.
            *self.woken = Some(unsafe { Ready::new(NonNull::from(self.core)) });
        }
    }
}

/// Forgets the threads of the parent, in the child of a fork that has no runtime yet: entries may
/// have been claimed by others, so there will be new tables.
pub(crate) fn after_fork() {
    for table in &TABLES {
        // Relaxed, both: there is no runtime yet.
        if !table.load(Relaxed).is_null() {
            table.store(ptr::null_mut(), Relaxed);
        }
    }
}

/// Returns whether there is a thread in a slot, or was a moment ago.
#[inline]
pub fn has_thread(slot: Slot) -> bool {
    table(slot).is_some_and(|table| !table[slot.index()].is_empty())
}

/// Returns the bytes of the tables.
#[inline]
pub fn bytes() -> usize {
    let made = |table: &&AtomicPtr<Table>| !table.load(Relaxed).is_null();
    TABLES.iter().filter(made).count() * size_of::<Table>()
}
