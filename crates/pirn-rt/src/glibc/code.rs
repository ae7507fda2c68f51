//! Which code may be interrupted by preemption.
//!
//! A thread that is put aside in the middle of libc may hold libc's locks, and has malloc's words
//! of its carrier, which the carrier's next thread would use as well. The same holds for the
//! dynamic linker, and for other libraries that libc calls with locks held. So a thread is left
//! alone while it executes code of those, [leaf functions](super::leaves) apart.
//!
//! The handler of a signal asks, so the answer is a table that is never changed: when libraries
//! have been opened, there is a new one.

use super::leaves;
use super::objects;
use super::symbols::find_in_libc;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The beginnings of the file names of libraries whose code is left alone.
const LIBRARIES: [&[u8]; 11] = [
    b"libc.so",
    b"libc-2.",
    b"ld-linux",
    b"ld-2.",
    b"libpthread",
    b"librt",
    b"libdl",
    b"libgcc_s",
    b"libnss_",
    b"libresolv",
    b"linux-vdso",
];

/// The tables' ranges are few, and most lookups end at the first.
#[derive(PartialEq)]
struct Table {
    /// The code that is left alone.
    forbidden: Vec<Range<usize>>,
    /// The parts of it that may be interrupted if they were called from outside.
    leaves: Vec<Range<usize>>,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

/// Learns which code of the loaded libraries must not be interrupted. Not to be called where memory
/// cannot be allocated.
///
/// # Errors
/// libc is not among them.
pub(crate) fn learn() -> Result<(), &'static str> {
    let functions = leaves::addresses();
    let mut table = Table {
        forbidden: Vec::new(),
        leaves: Vec::new(),
    };
    let none: Option<()> = objects::find_in(|object| {
        let name = object.file_name();
        if LIBRARIES.iter().any(|library| name.starts_with(library)) {
            table.forbidden.extend(object.segments(libc::PF_X));
            table.leaves.extend(leaves::find(&object, &functions));
        }
        None
    });
    debug_assert!(none.is_none());
    let inside_libc = find_in_libc(c"__libc_malloc");
    if !inside_libc.is_ok_and(|address| table.forbids(address as usize)) {
        return Err("libc's code was not found among the loaded libraries");
    }
    // Acquire: pairs with the Release below. SAFETY: tables are never freed.
    let known = unsafe { TABLE.load(Ordering::Acquire).as_ref() };
    if known != Some(&table) {
        // Release: pairs with the Acquire in `may_interrupt`. Old tables stay: a handler may read
        // one.
        TABLE.store(Box::into_raw(Box::new(table)), Ordering::Release);
    }
    Ok(())
}

impl Table {
    fn forbids(&self, address: usize) -> bool {
        self.forbidden.iter().any(|range| range.contains(&address))
    }
}

/// Returns whether code may be interrupted at `pc`. For a signal's handler.
///
/// # Safety
/// `sp` is the stack pointer of the interrupted code, and the word there is readable.
pub(crate) unsafe fn may_interrupt(pc: usize, sp: usize) -> bool {
    // Acquire: pairs with the Release in `learn`. SAFETY: tables are never freed.
    let Some(table) = (unsafe { TABLE.load(Ordering::Acquire).as_ref() }) else {
        return false;
    };
    if !table.forbids(pc) {
        return true;
    }
    // A leaf function that libc has called may be under one of its locks.
    // SAFETY: the caller's contract.
    table.leaves.iter().any(|leaf| leaf.contains(&pc))
        && !table.forbids(unsafe { (sp as *const usize).read() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libc_is_left_alone_except_for_leaves_called_from_outside() {
        learn().unwrap();
        let outside = may_interrupt as *const () as usize;
        let inside = find_in_libc(c"__libc_malloc").unwrap() as usize;
        let leaf = leaves::addresses()[0];
        let interrupted = |pc, caller: usize| {
            // SAFETY: a word on this stack.
            unsafe { may_interrupt(pc, &raw const caller as usize) }
        };
        assert!(interrupted(outside, inside));
        assert!(!interrupted(inside, outside));
        assert!(interrupted(leaf, outside));
        assert!(!interrupted(leaf, inside));
    }

    #[test]
    fn leaf_functions_have_plausible_sizes() {
        learn().unwrap();
        // SAFETY: stored by `learn`.
        let table = unsafe { &*TABLE.load(Ordering::Acquire) };
        assert!(table.leaves.len() >= 8, "{:x?}", table.leaves);
        // The smallest only jump to another.
        let plausible = |range: &Range<usize>| (2..16384).contains(&range.len());
        assert!(table.leaves.iter().all(plausible), "{:x?}", table.leaves);
    }
}
