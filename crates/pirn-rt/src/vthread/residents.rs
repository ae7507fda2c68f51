//! Which virtual thread lives in which slot, for those who walk over all threads from outside.
//!
//! A thread [enters](Entry::enter) when it gets its slot and [leaves](Entry::leave) before it gives
//! the slot back: one store and one exchange in its life. Whoever looks at a thread claims its
//! entry meanwhile, and the thread's end waits for that.
//!
//! The table has a part for each region of slots, and the slots in use are close together: a walk
//! over it touches little more than one line per eight threads.

use super::record::Core;
use super::resident::Entry;
use super::{Ready, resident};
#[cfg(feature = "dump")]
use crate::arch;
use crate::mark::Raised;
use crate::sched;
use crate::stack::Slot;
use crate::stack::region::{MAX_REGIONS, MAX_SLOTS};
use crate::sys;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};

/// The entries of one region's slots.
type Table = [Entry<Core>; MAX_SLOTS];

/// Made when the first thread enters; never freed.
static TABLES: [AtomicPtr<Table>; MAX_REGIONS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_REGIONS];

/// Where readers outside of the process find what. The table of a region has one word per slot.
pub const LAYOUT: [(&str, usize); 1] = [("residents.flags", resident::CLAIMED)];

/// Returns the address of the tables' addresses, by region.
#[inline]
pub const fn tables() -> *const () {
    (&raw const TABLES).cast()
}

#[inline]
fn table(slot: Slot) -> Option<&'static Table> {
    // Acquire: pairs with the Release in `make_table`.
    let table = TABLES[slot.region()].load(Ordering::Acquire);
    // SAFETY: published, and never freed.
    unsafe { table.as_ref() }
}

/// Makes the table of a slot's region; `None` if there is no memory.
#[cold]
fn make_table(slot: Slot) -> Option<&'static Table> {
    let place = &TABLES[slot.region()];
    let bytes = size_of::<Table>();
    let new = sys::map(bytes, 0).ok()? as *mut Table; // zeros: empty entries
    let (null, release, acquire) = (ptr::null_mut(), Ordering::Release, Ordering::Acquire);
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
        table[slot.index()].leave();
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
            Err(resident::Busy) => sys::back_off(round),
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
            Err(resident::Busy) => sys::back_off(round),
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
    for table in &TABLES {
        // Relaxed, both: there is no runtime yet.
        if !table.load(Ordering::Relaxed).is_null() {
            table.store(ptr::null_mut(), Ordering::Relaxed);
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
    let made = |table: &&AtomicPtr<Table>| !table.load(Ordering::Relaxed).is_null();
    TABLES.iter().filter(made).count() * size_of::<Table>() // Relaxed: as above.
}
