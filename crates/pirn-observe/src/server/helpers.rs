//! The platform threads of the server.

use pirn_rt::alloc;
use pirn_rt::sanitizer::valgrind;
use pirn_rt::sys;
use pirn_rt::vthread::start_helper;
use std::io;

/// Bytes of a thread's stack, for unwinding and symbols: address space, of which a thread that
/// only waits uses two pages.
const STACK: usize = 512 << 10;
/// The program ends if there is no memory for a thread's record, so this much must be free beside
/// its stack.
const ROOM: usize = 64 << 10;
/// All signals but the two that the C library sends to each thread, and waits for: 32 and 33.
const ALL_SIGNALS: u64 = !(0b11 << 31);

/// Starts a platform thread on which no handler of the program runs.
///
/// # Errors
/// There is no memory, or the system refuses another thread.
pub(super) fn start(name: &str, f: impl FnOnce() + Send + 'static) -> io::Result<()> {
    start_with(name, STACK, f)
}

/// The same with a stack of this size.
pub(super) fn start_with(
    name: &str,
    stack: usize,
    f: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    alloc::probe(stack + ROOM)?;
    let before = sys::blocked_signals();
    sys::block_only(before | ALL_SIGNALS); // The new thread inherits this.
    let run = move || {
        valgrind::note_platform_thread();
        f();
    };
    let started = start_helper(name, stack, run);
    sys::block_only(before);
    started
}
