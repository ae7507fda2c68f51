//! Saying which virtual thread panicked.

use super::current;
use crate::vthread;
use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};

type Hook = dyn Fn(&PanicHookInfo<'_>) + Sync + Send;

/// Puts a line with the virtual thread's id and name before `std`'s own message of a panic. Once,
/// at start.
///
/// `std` takes the name in its message from a place that only its own start of a thread fills in,
/// and so calls nearly all virtual threads `<unnamed>`. A hook of the program's stays as it is,
/// whether it is set before or later: what it writes, or that it is silent, is its own business.
pub(crate) fn name_them() {
    if std::thread::panicking() {
        return; // The hook cannot be changed now, and is not worth failing for.
    }
    let found = panic::take_hook();
    // The first call has left std's own hook in force, so this is that one.
    let default = panic::take_hook();
    if !same(&*found, &*default) {
        panic::set_hook(found);
        return;
    }
    panic::set_hook(Box::new(move |info| {
        if vthread::current().is_some() && std::thread::current().name().is_none() {
            // Not `eprintln!`: it panics when standard error cannot be written.
            let _ = writeln!(io::stderr(), "\nin {:?}:", current());
        }
        default(info);
    }));
}

/// Whether two hooks are the same function. `std` makes both boxes in the same place, so theirs
/// share a vtable; a hook with data of its own has another address besides.
#[allow(ambiguous_wide_pointer_comparisons)] // different types never have equal vtables here
fn same(one: &Hook, other: &Hook) -> bool {
    core::ptr::eq(one, other)
}

#[cfg(test)]
mod tests;
