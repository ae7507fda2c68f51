//! The entry of a slot in the table of [residents](super::residents): the thread that lives there,
//! and whether somebody looks at it.
//!
//! ```text
//!   entry        set by                        next
//!   null         (initially); leave            record: enter
//!   record       enter; look, when it is done  claimed: look;  null: leave
//!   claimed      look                          record: the same look
//! ```
//!
//! `leave` waits until nobody looks. So a record that is looked at stays in memory, and whoever
//! looks needs no reference that is counted.

use crate::primitives::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sys;
use core::ptr::{self, NonNull};

/// Set in an entry while its record is looked at; records are aligned.
pub(crate) const CLAIMED: usize = 1;

/// See the module's documentation.
pub(crate) struct Entry<T> {
    record: AtomicPtr<T>,
}

/// Another looks at the record just now.
#[derive(Debug)]
pub(crate) struct Busy;

impl<T> Entry<T> {
    /// Returns an entry without a record.
    #[allow(dead_code)] // For the models: the runtime's tables begin as zeros.
    #[inline]
    pub(crate) fn empty() -> Entry<T> {
        Entry {
            record: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Returns whether there is no record here, or was none a moment ago.
    #[allow(dead_code)] // the models do without it
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

    /// Returns where the record is, or was, or null. Nobody may follow it.
    #[allow(dead_code)] // For dumps.
    #[inline]
    pub(crate) fn hint(&self) -> *const T {
        let record = self.record.load(Relaxed); // Relaxed: a hint.
        record.map_addr(|record| record & !CLAIMED)
    }

    /// Takes the record out, if there is one. Waits while it is looked at.
    #[inline]
    pub(crate) fn leave(&self) {
        // Relaxed: only its claim counts, and the exchange checks it.
        let record = self.record.load(Relaxed).map_addr(|r| r & !CLAIMED);
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
            sys::back_off(round);
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
        let claimed = record.map_addr(|record| record | CLAIMED);
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
        let _claim = Claim {
            entry: self,
            record,
        };
        // SAFETY: `leave` waits until the claim is given up, and the record stays until then.
        Ok(Some(f(unsafe { &*record })))
    }
}

/// Gives up the claim of an entry, also if what looks at it panics.
struct Claim<'a, T> {
    entry: &'a Entry<T>,
    record: *mut T,
}

impl<T> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `leave`, which ends the record.
        self.entry.record.store(self.record, Release);
    }
}
