//! What threads a program has made, and why not all are virtual: one sentence for its operator.

use crate::leaving;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use pirn_libc::thread::names;
use pirn_rt::{environment, sched::runtime, sys};
use std::io::{self, Write};

/// Why a thread of the program is a platform thread although the process wants virtual ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Why {
    /// The program provides the stack (`pthread_attr_setstack`).
    OwnStack,
    /// The thread asks for a scheduling policy or a priority.
    Scheduling,
    /// The thread is bound to some CPUs.
    Affinity,
    /// The stack is larger than any slot.
    LargeStack,
    /// There is no runtime: it could not start.
    NoRuntime,
    /// The thread was created in a signal handler.
    InHandler,
    /// The user asked for it, by the library that makes it, or by `pirn.h`.
    Chosen,
    /// The thread belongs to a library that makes its system calls itself.
    OwnCalls,
}

impl Why {
    /// The reasons, in their order, as they follow a number of threads.
    const TEXTS: [&str; REASONS] = [
        "with a stack of the program's",
        "with a scheduling policy or priority",
        "bound to CPUs",
        "with a stack too large for a virtual thread",
        "without a runtime: it could not start",
        "made in a signal handler",
        "by choice",
        "of a library that makes its system calls itself",
    ];
}

/// The number of reasons.
const REASONS: usize = Why::OwnCalls as usize + 1;

/// The numbers of threads made: virtual ones, then platform threads by their reasons.
static MADE: [AtomicU64; 1 + REASONS] = [const { AtomicU64::new(0) }; 1 + REASONS];

/// Counts a virtual thread.
pub(crate) fn count_virtual() {
    MADE[0].fetch_add(1, Relaxed); // Relaxed: statistics only, here and below.
}

/// Counts a platform thread.
pub(crate) fn count_platform(why: Why) {
    MADE[1 + why as usize].fetch_add(1, Relaxed); // Relaxed: statistics only.
}

/// Reports, once, why there is no runtime, and returns that as the reason for a platform thread.
#[cold]
pub(crate) fn no_runtime(error: &io::Error) -> Why {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if error.kind() == io::ErrorKind::OutOfMemory {
        return Why::NoRuntime; // Nor is there memory to say so. libc's thread fails as natively.
    }
    if !REPORTED.swap(true, Relaxed) {
        environment::notice(&format!(
            "{error}; the program's threads are platform threads"
        ));
    }
    Why::NoRuntime
}

/// Writes how many threads have been made so far: virtual ones, then platform threads with their
/// own stack, a scheduling policy, an affinity, too large a stack, without a runtime, in a signal
/// handler, by choice, of a library that makes its system calls itself. Returns the number of
/// counts, of which at most `room` are written.
///
/// # Safety
/// `counts` is valid for `room` writes.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn pirn_count_pthreads(counts: *mut u64, room: usize) -> usize {
    for (i, made) in MADE.iter().enumerate().take(room) {
        // SAFETY: the caller's contract.
        unsafe { counts.add(i).write(made.load(Relaxed)) }; // Relaxed: statistics only.
    }
    MADE.len()
}

/// Whether this process is the child of a fork.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// Begins to count anew, in the child of a fork.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn pirn_forget_pthreads() {
    IS_FORKED.store(true, Relaxed); // Relaxed: there is one thread.
    for made in &MADE {
        made.store(0, Relaxed); // Relaxed: statistics only.
    }
    leaving::forget_most();
}

/// Writes to standard error how many threads of this process have been virtual, and why others have
/// not. Children of forks that make no threads, such as a shell's, say nothing. It neither
/// locks nor allocates: a process may end anywhere.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn pirn_report_pthreads() {
    let made = MADE.each_ref().map(|made| made.load(Relaxed)); // Relaxed: statistics only.
    if made == [0; 1 + REASONS] && IS_FORKED.load(Relaxed) {
        return;
    }
    let mut text = [0; 1024];
    let mut room = &mut text[..1023];
    // A text that is too long is cut.
    let _ = write_sentence(&mut room, made);
    let length = 1023 - room.len();
    text[length] = b'\n';
    // SAFETY: the text.
    let _ = unsafe { sys::call!(libc::SYS_write, 2, text.as_ptr(), length + 1) };
}

fn write_sentence(out: &mut &mut [u8], made: [u64; 1 + REASONS]) -> io::Result<()> {
    let name = str::from_utf8(names::program().to_bytes()).unwrap_or("?");
    let pid = std::process::id();
    write!(out, "pirn: {name} ({pid}): ")?;
    if made == [0; 1 + REASONS] {
        return write!(out, "the program made no threads");
    }
    let [virtuals, platform @ ..] = made;
    let all: u64 = platform.iter().sum();
    write!(out, "{virtuals} virtual and {all} platform threads")?;
    let mut separator = " (";
    for (number, why) in platform.iter().zip(Why::TEXTS) {
        if *number > 0 {
            write!(out, "{separator}{number} {why}")?;
            separator = ", ";
        }
    }
    if all > 0 {
        write!(out, ")")?;
    }
    write!(out, ", at most {} at once", leaving::most())?;
    match runtime::get().map(|runtime| runtime.processors.used().len()) {
        Some(1) => write!(out, "; 1 carrier"),
        Some(carriers) => write!(out, "; {carriers} carriers"),
        None => Ok(()),
    }
}
