//! Which virtual thread lives in which slot, for those who walk over all threads from outside.
//!
//! A thread enters when it gets its slot and leaves before it gives the slot back. Whoever looks at
//! a thread claims its entry meanwhile, and the thread's end waits for that; so a record that is
//! looked at stays in memory.
//!
//! ```text
//!   entry        set by                        next
//!   null         (initially); leave            record: enter
//!   record       enter; look, when it is done  claimed: look;  null: leave
//!   claimed      look                          record: the same look
//! ```

use super::record::Core;
use crate::stack::Slot;
use crate::stack::region::{MAX_REGIONS, MAX_SLOTS};
use crate::sys;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};

/// Set in an entry while its thread is looked at; records are aligned.
const CLAIMED: usize = 1;

/// The entries of one region's slots.
type Table = [AtomicPtr<Core>; MAX_SLOTS];

/// Made when the first thread enters; never freed.
static TABLES: [AtomicPtr<Table>; MAX_REGIONS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_REGIONS];

/// Where readers outside of the process find what. The table of a region has one word per slot.
pub(crate) const LAYOUT: [(&str, usize); 1] = [("residents.flags", CLAIMED)];

/// Returns the address of the tables' addresses, by region.
pub(crate) const fn tables() -> *const () {
    (&raw const TABLES).cast()
}

fn table(slot: Slot) -> Option<&'static Table> {
    // Acquire: pairs with the Release in `make_table`.
    let table = TABLES[slot.region()].load(Ordering::Acquire);
    // SAFETY: published, and never freed.
    unsafe { table.as_ref() }
}

/// Makes the table of a slot's region; `None` if there is no memory.
fn make_table(slot: Slot) -> Option<&'static Table> {
    let place = &TABLES[slot.region()];
    let bytes = size_of::<Table>();
    let new = sys::map(bytes, 0).ok()? as *mut Table; // zeros: null entries
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
pub(super) unsafe fn enter(slot: Slot, core: &Core) {
    if let Some(table) = table(slot).or_else(|| make_table(slot)) {
        let core = ptr::from_ref(core).cast_mut();
        // Release: pairs with the Acquire in `look`: the record is complete.
        table[slot.index()].store(core, Ordering::Release);
    }
}

/// Takes out the thread that is about to give its slot back. Waits while it is looked at.
pub(super) fn leave(slot: Slot) {
    let Some(table) = table(slot) else { return };
    let entry = &table[slot.index()];
    let mut round = 0;
    loop {
        // Relaxed: only its claim counts, and the exchange checks it.
        let core = entry
            .load(Ordering::Relaxed)
            .map_addr(|core| core & !CLAIMED);
        let (null, order) = (ptr::null_mut(), Ordering::Acquire);
        // Acquire: pairs with the Release at the end of `look`, which has used the record.
        if core.is_null() || entry.compare_exchange(core, null, order, order).is_ok() {
            return;
        }
        sys::back_off(round);
        round += 1;
    }
}

/// Calls `f` with the thread in a slot, if there is one. `f` is short: the thread cannot end
/// meanwhile, and its carrier would wait.
pub(crate) fn look<R>(slot: Slot, f: impl FnOnce(&Core) -> R) -> Option<R> {
    let entry = &table(slot)?[slot.index()];
    // Relaxed: the exchange below checks it.
    let core = NonNull::new(entry.load(Ordering::Relaxed))?;
    let claimed = core.as_ptr().map_addr(|core| core | CLAIMED);
    if claimed == core.as_ptr() {
        return None; // Another looks at it.
    }
    let (order, failure) = (Ordering::Acquire, Ordering::Relaxed);
    // Acquire: pairs with the Release in `enter`. Relaxed: it has left.
    let exchanged = entry.compare_exchange(core.as_ptr(), claimed, order, failure);
    exchanged.ok()?;
    // SAFETY: `leave` waits until the claim is given up, and the record stays until then.
    let result = f(unsafe { core.as_ref() });
    // Release: pairs with the Acquire in `leave`.
    entry.store(core.as_ptr(), Ordering::Release);
    Some(result)
}
