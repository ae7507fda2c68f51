//! The names of threads that are spawned, and those in messages about panics.

use super::current;
use pirn_rt::vthread;
use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The names of the threads that one builder makes.
#[derive(Clone, Default)]
pub(super) enum Names {
    /// The threads have no names.
    #[default]
    None,
    /// All threads have this name.
    Fixed(String),
    /// A prefix, and the number of the next thread. The builder's clones share the counter.
    Counter(Arc<(String, AtomicU64)>),
}

impl Names {
    /// Returns names that consist of `prefix` and a number, from `start` on.
    pub(super) fn counter(prefix: String, start: u64) -> Names {
        Names::Counter(Arc::new((prefix, AtomicU64::new(start))))
    }

    /// Panics if a name contains a NUL byte, as `std` does.
    ///
    /// Not for scopes and executors: their forks report failures, so they use the error of
    /// [`next`](Self::next).
    #[inline]
    pub(super) fn assert_valid(&self) {
        let name = match self {
            Names::None => return,
            Names::Fixed(name) => name,
            Names::Counter(counter) => &counter.0,
        };
        assert!(
            !name.contains('\0'),
            "thread name may not contain interior null bytes: {name:?}"
        );
    }

    /// Returns the name of the next thread.
    ///
    /// # Errors
    /// `InvalidInput`: it contains a NUL byte.
    pub(super) fn next(&self) -> io::Result<Option<String>> {
        match self {
            Names::None => Ok(None),
            Names::Fixed(name) => checked(name.clone()).map(Some),
            Names::Counter(counter) => {
                let (prefix, next) = &**counter;
                // Relaxed: only uniqueness matters.
                let number = next.fetch_add(1, Ordering::Relaxed);
                checked(format!("{prefix}{number}")).map(Some)
            }
        }
    }

    /// Returns the part that all names have in common, for `Debug`.
    pub(super) fn pattern(&self) -> Option<String> {
        match self {
            Names::None => None,
            Names::Fixed(name) => Some(name.clone()),
            Names::Counter(counter) => Some(format!("{}<n>", counter.0)),
        }
    }
}

/// Returns the name if a thread can have it.
///
/// # Errors
/// `InvalidInput`: it contains a NUL byte, for which `std` would panic.
fn checked(name: String) -> io::Result<String> {
    if name.contains('\0') {
        let text = format!("the thread name {name:?} contains a NUL byte");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(name)
}

type Hook = dyn Fn(&PanicHookInfo<'_>) + Sync + Send;

/// Installs a hook that prints a line with the virtual thread's id and name before `std`'s own
/// panic message. Called once, at start.
///
/// `std` takes the name in its message from a place that only its own start of a thread fills in,
/// and so calls nearly all virtual threads `<unnamed>`. A hook of the program stays as it is,
/// whether it is set earlier or later, and decides alone what to write.
pub(crate) fn name_in_panics() {
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
mod tests {
    use super::*;

    #[test]
    fn only_the_same_function_is_the_same_hook() {
        let (silent, loud): (Box<Hook>, Box<Hook>) =
            (Box::new(|_| ()), Box::new(|_| eprintln!("loud")));
        assert!(!same(&*silent, &*loud));
        let data = 5;
        let with_data: Box<Hook> = Box::new(move |_| assert_eq!(data, 5));
        assert!(!same(&*silent, &*with_data));
        assert!(same(&*silent, &*silent));
    }
}
