//! `pthread_once`: ours, for all threads.
//!
//! libc's would wait in libc. The word is the program's `pthread_once_t`, initially zero:
//!
//! ```text
//!   0           not begun
//!   pid<<2 | 1  a thread of this process runs it; the child of a fork lacks that thread,
//!               sees another pid than its own, and begins anew, as with glibc
//!   2           done (glibc's value)
//! ```

use crate::registry::interposed;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};
use libc::pthread_once_t;
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::futex;
use pirn_rt::vthread::wait_reason::Kind;

interposed! {
    family "Once" for Correctness;

    Parks by hand { pthread_once }
}

/// The routine of a `pthread_once`; `None` does nothing.
pub(crate) type OnceRoutine = Option<unsafe extern "C-unwind" fn()>;

const NEW: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;

/// If `routine` unwinds (a C++ exception), the next caller runs it again.
#[libc_fn]
pub unsafe fn pthread_once(control: *mut pthread_once_t, routine: OnceRoutine) -> c_int {
    // SAFETY: the caller passes a valid word.
    let word = unsafe { AtomicU32::from_ptr(control.cast()) };
    // Acquire: pairs with the Release of `Initialising::drop`: the routine's writes.
    if word.load(Ordering::Acquire) != DONE {
        call_slowly(word, routine);
    }
    0
}

#[cold]
fn call_slowly(word: &AtomicU32, routine: OnceRoutine) {
    // SAFETY: no arguments.
    let running = unsafe { libc::getpid() as u32 } << 2 | RUNNING;
    loop {
        // Acquire: as in `pthread_once`.
        let seen = word.load(Ordering::Acquire);
        if seen == DONE {
            return;
        }
        if seen == running {
            // SAFETY: the word is alive.
            unsafe { futex::wait_while(Kind::Once, word.as_ptr().addr(), word.as_ptr(), running) };
            continue;
        }
        // Relaxed: nothing is published yet. Acquire: sees what an earlier run did before it
        // unwound.
        if word
            .compare_exchange(seen, running, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
        {
            let mut run = Initialising { word, ends_as: NEW };
            if let Some(routine) = routine {
                // SAFETY: the caller's function.
                unsafe { routine() };
            }
            run.ends_as = DONE;
            return;
        }
    }
}

/// Stores how the run ended, also when the routine unwinds.
struct Initialising<'a> {
    word: &'a AtomicU32,
    ends_as: u32,
}

impl Drop for Initialising<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the threads that see it.
        self.word.store(self.ends_as, Ordering::Release);
        futex::wake_waiters(self.word.as_ptr(), i32::MAX);
    }
}
