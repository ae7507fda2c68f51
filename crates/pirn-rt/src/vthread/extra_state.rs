//! The GS base and the rights of protection keys, which belong to an OS thread and which a program
//! may set for each of its threads: runtimes of WebAssembly and Wine set the GS base, sandboxes and
//! JIT compilers the rights.
//!
//! Hardly any program does. So a switch carries them only after the first system call that prepares
//! for it: `arch_prctl(ARCH_SET_GS)`, `pkey_alloc`. Then it also carries what instructions set
//! (`wrgsbase`, `wrpkru`). Until then a switch has one load and one branch, which the recorder of
//! events needs in any case.
//!
//! ```text
//!   A leaves, B goes on     A's TLS block  <- GS, rights <-  B's TLS block
//!   A leaves, none goes on  A's TLS block  <- GS, rights <-  the carrier's
//! ```
//!
//! A thread that has not left a carrier since then has the values that the caller of the first call
//! had before it. So has a new thread; natively it would begin with its creator's. A thread that
//! runs others itself, by a `Scheduler`, finds its carrier's values after that.

use super::record::Core;
use crate::arch::Extra;
use crate::glibc::tls;
use crate::recorder;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, fence};

thread_local! {
    /// The values of a thread that is not mounted, also of a platform thread while it carries;
    /// `None`: the [first] ones.
    static OWN: Cell<Option<Extra>> = const { Cell::new(None) };
}

/// The values that the caller of the first call had. All relaxed: two callers at once have the
/// same, and a thread that sees another's changes has the switches after them do so as well.
static FIRST: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Makes switches carry them from now on.
#[inline]
pub fn carry() {
    if !recorder::carries_extra_state() {
        for (first, word) in FIRST.iter().zip(Extra::read().words()) {
            first.store(word, Relaxed);
        }
        recorder::carry_extra_state();
    }
}

fn first() -> Extra {
    Extra::from_words(FIRST.each_ref().map(|word| word.load(Relaxed)))
}

/// Keeps the values of the thread that leaves, which still runs, and loads the values of the thread
/// that goes on. `None`: the carrier's own code, with the thread pointer `native_tp`.
pub(crate) fn switch(native_tp: usize, leaving: Option<&Core>, next: Option<&Core>) {
    // Acquire: pairs with the Release in `recorder::carry_extra_state`, for the first values.
    fence(Acquire);
    let place = |thread: Option<&Core>| match thread {
        None => Some(native_tp),
        Some(thread) => thread.slot().map(|slot| slot.tp()),
    };
    if let Some(tp) = place(leaving) {
        // SAFETY: of the running thread, or the carrier that it runs on.
        unsafe { (*tls::place_of(&OWN, tp)).set(Some(Extra::read())) };
    }
    let new = place(next).and_then(|tp| {
        // SAFETY: the next thread is this carrier's to run, so no other thread uses its block.
        unsafe { (*tls::place_of(&OWN, tp)).get() }
    });
    // SAFETY: the runtime uses neither until the switch, which follows.
    unsafe { new.unwrap_or_else(first).load() };
}
