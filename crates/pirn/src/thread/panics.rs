//! Panic messages that name the virtual thread.

use super::current;
use pirn_rt::vthread;
use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};

type Hook = dyn Fn(&PanicHookInfo<'_>) + Sync + Send;

/// Installs a hook that prints a line with the virtual thread's id and name before `std`'s own
/// panic message. Called once, at start.
///
/// `std` takes the name in its message from a place that only its own start of a thread fills in,
/// and so calls nearly all virtual threads `<unnamed>`. A hook of the program stays as it is,
/// whether it is set earlier or later, and decides alone what to write.
pub(crate) fn name_them() {
    if std::thread::panicking() {
        return; // The hook cannot be changed now, and is not worth failing for.
    }
    let found = panic::take_hook();
    // The first call has left std's own hook in force, so this is std's hook.
    let default = panic::take_hook();
    if !same(&*found, &*default) {
        panic::set_hook(found);
        return;
    }
    panic::set_hook(Box::new(move |info| {
        if vthread::current().is_some() && std::thread::current().name().is_none() {
            // Not `eprintln!`, which panics if standard error cannot be written.
            let _ = writeln!(io::stderr(), "\nin {:?}:", current());
        }
        default(info);
    }));
}

/// Returns whether two hooks are the same function. `std` makes both boxes in the same place, so
/// its hooks share a vtable; a hook with data of its own also has another address.
#[allow(ambiguous_wide_pointer_comparisons)] // different types never have equal vtables here
fn same(one: &Hook, other: &Hook) -> bool {
    core::ptr::eq(one, other)
}

#[cfg(test)]
mod tests;
