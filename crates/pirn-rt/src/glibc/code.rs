//! Which code may be interrupted by preemption.
//!
//! A thread that is put aside in the middle of libc may hold libc's locks, and it uses malloc's
//! words of its carrier, which the carrier's next thread would use as well. The same holds for the
//! dynamic linker, and for other libraries that libc calls under a lock. So a thread is not
//! preempted while it executes their code, not even `memcpy`: then a spare carrier runs the other
//! threads.
//!
//! The handler of a signal reads the table, so a table never changes: the opening of a library
//! makes a new one.

use super::objects;
use super::symbols::find_in_libc;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The beginnings of the file names of the libraries in whose code no thread is preempted.
const LIBRARIES: [&[u8]; 6] = [
    b"libc.so",
    b"ld-linux",
    b"libgcc_s",
    b"libnss_",
    b"libresolv",
    b"linux-vdso",
];

/// The code of those libraries. The ranges are few, and most lookups end at the first.
type Table = Vec<Range<usize>>;

static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

/// The first and the last address of the code in which the runtime's own is.
static OWN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Notes where the code of the loaded libraries is. Not to be called where memory cannot be
/// allocated.
///
/// # Errors
/// libc is not among the loaded libraries.
pub(crate) fn learn() -> Result<(), &'static str> {
    let mut table = Table::new();
    let (own, malloc) = (
        learn as *const () as usize,
        libc::malloc as *const () as usize,
    );
    let none: Option<()> = objects::find_in(|object| {
        let name = object.file_name();
        let has_own = object.code_at(own);
        // A preloaded allocator has locks as libc has. The program's own name is empty.
        let allocates = !name.is_empty() && object.code_at(malloc).is_some() && has_own.is_none();
        if allocates || LIBRARIES.iter().any(|library| name.starts_with(library)) {
            table.extend(object.segments(libc::PF_X));
        }
        if let Some(code) = has_own {
            OWN[0].store(code.start, Ordering::Relaxed); // Relaxed, both: always the same numbers.
            OWN[1].store(code.end - 1, Ordering::Relaxed);
        }
        None
    });
    debug_assert!(none.is_none());
    let inside_libc = find_in_libc(c"__libc_malloc");
    if !inside_libc.is_ok_and(|address| contains(&table, address as usize)) {
        return Err("libc's code was not found among the loaded libraries");
    }
    // Acquire: pairs with the Release below. SAFETY: tables are never freed.
    let known = unsafe { TABLE.load(Ordering::Acquire).as_ref() };
    if known != Some(&table) {
        // Release: publishes the table to `may_interrupt`, in whose handler the old table may still
        // be read: so that one is not freed.
        TABLE.store(Box::into_raw(Box::new(table)), Ordering::Release);
    }
    Ok(())
}

fn contains(table: &Table, address: usize) -> bool {
    table.iter().any(|range| range.contains(&address))
}

/// Returns whether a thread may be preempted at this instruction. For a signal's handler.
pub(crate) fn may_interrupt(pc: usize) -> bool {
    // Acquire: pairs with the Release in `learn`. SAFETY: tables are never freed.
    let table = unsafe { TABLE.load(Ordering::Acquire).as_ref() };
    table.is_some_and(|table| !contains(table, pc))
}

/// Returns whether an instruction is in the object that the runtime is part of: `libpirn.so`, or a
/// program of Rust.
pub(crate) fn is_own(pc: usize) -> bool {
    let [first, last] = OWN.each_ref().map(|it| it.load(Ordering::Relaxed)); // Relaxed: see `learn`.
    (first..=last).contains(&pc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_libc_is_not_interrupted() {
        learn().unwrap();
        assert!(may_interrupt(may_interrupt as *const () as usize));
        let inside = find_in_libc(c"__libc_malloc").unwrap();
        assert!(!may_interrupt(inside as usize));
        assert!(is_own(may_interrupt as *const () as usize) && !is_own(inside as usize));
    }
}
