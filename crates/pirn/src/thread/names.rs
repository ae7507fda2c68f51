//! The names of threads that are spawned.

use std::io;
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
