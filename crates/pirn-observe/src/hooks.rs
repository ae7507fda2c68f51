//! What the crates above know and this one shows: functions that they give once, at the start.

use pirn_dump::Scope;
use pirn_rt::vthread::wait_reason::Kind;
use std::sync::OnceLock;

/// See the module's documentation.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Returns all open scopes, in no order.
    pub scopes: fn() -> Vec<Scope>,
    /// Returns the number of open scopes.
    pub open_scopes: fn() -> usize,
    /// Returns where a virtual thread has the address of its innermost [annotation], by its thread
    /// pointer.
    ///
    /// [annotation]: crate::dump::ANNOTATION_WORDS
    pub annotations: fn(usize) -> usize,
    /// Returns the addresses of all interposed functions, sorted.
    pub interposed: fn() -> Vec<usize>,
    /// Returns the id, in glibc's terms, of the thread that has the lock of this kind at this
    /// address.
    pub lock_owner: fn(Kind, usize) -> Option<u32>,
    /// Returns whether a signal can stop a platform thread, and whether the system call that it
    /// interrupts begins again.
    pub stop_signal: fn() -> StopSignal,
}

/// The signal that stops a platform thread while its stack is read.
#[derive(Clone, Copy)]
pub struct StopSignal {
    /// The kernel calls the runtime's handler.
    pub works: bool,
    /// A system call that it interrupts begins again, if the kernel can begin it again.
    pub restarts: bool,
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// Without the crates above: no scopes, no annotations, no interposed functions.
const NONE: Hooks = Hooks {
    scopes: Vec::new,
    open_scopes: || 0,
    annotations: |_| 0,
    interposed: Vec::new,
    lock_owner: |_, _| None,
    stop_signal: || StopSignal {
        works: false,
        restarts: false,
    },
};

impl Hooks {
    /// Installs them. Called once, at the start.
    pub fn install(self) {
        let _ = HOOKS.set(self); // A second start of the runtime brings the same functions.
    }
}

/// Returns the functions. Neither allocates nor waits.
pub(crate) fn hooks() -> &'static Hooks {
    HOOKS.get().unwrap_or(&NONE)
}
