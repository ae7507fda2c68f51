//! What threads a program has made, and why not all are virtual: one sentence for its operator.

use crate::leaving;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use pirn_libc::thread::names;
use pirn_rt::{notices, runtime, sys};
use std::io;

/// Why a thread of the program is a platform thread although the process wants virtual ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(crate) enum Why {
    /// Its stack is the program's (`pthread_attr_setstack`).
    OwnStack,
    /// It asks for a scheduling policy or a priority.
    Scheduling,
    /// It is bound to some CPUs.
    Affinity,
    /// Its stack is larger than any slot.
    LargeStack,
    /// There is no runtime: it could not start.
    NoRuntime,
    /// It was created in a signal handler.
    InHandler,
    /// Somebody wants it so, by the library that makes it, or by `pirn.h`.
    Chosen,
    /// It is of a library that makes its system calls itself.
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
    MADE[0].fetch_add(1, Relaxed); // Relaxed: for people to read, as all that follows.
}

/// Counts a platform thread.
pub(crate) fn count_platform(why: Why) {
    MADE[1 + why as usize].fetch_add(1, Relaxed); // Relaxed: as above.
}

/// Reports, once, why there is no runtime, and returns that as the reason for a platform thread.
#[cold]
pub(crate) fn no_runtime(error: &io::Error) -> Why {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if error.kind() == io::ErrorKind::OutOfMemory {
        return Why::NoRuntime; // Nor is there memory to say so. libc's thread fails as natively.
    }
    if !REPORTED.swap(true, Relaxed) {
        notices::write(&format!(
            "{error}; the program's threads are platform threads"
        ));
    }
    Why::NoRuntime
}

/// The numbers of threads so far.
struct Made {
    virtuals: u64,
    /// Platform threads, by their reasons.
    platform: [u64; REASONS],
    /// The most at once, without the first thread of the program.
    most: usize,
}

impl Made {
    fn is_empty(&self) -> bool {
        self.virtuals == 0 && self.platform.iter().all(|&count| count == 0)
    }
}

/// Returns what has been made so far.
fn made() -> Made {
    let count = |place: usize| MADE[place].load(Relaxed);
    Made {
        virtuals: count(0),
        platform: core::array::from_fn(|why| count(1 + why)),
        most: leaving::most(),
    }
}

/// Begins to count anew.
fn forget() {
    for made in &MADE {
        made.store(0, Relaxed);
    }
    leaving::forget_most();
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
        unsafe { counts.add(i).write(made.load(Relaxed)) }; // Relaxed: as above.
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
    forget();
}

/// Writes to standard error how many threads of this process have been virtual, and why others have
/// not. Children of forks that make no threads, such as those of a shell, say nothing. It neither
/// locks nor allocates: a process may end anywhere.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn pirn_report_pthreads() {
    let mut text = Text {
        bytes: [0; 1024],
        length: 0,
    };
    let made = made();
    if made.is_empty() && IS_FORKED.load(Relaxed) {
        return; // Relaxed: as above.
    }
    // A text that is too long is cut.
    let _ = write_sentence(&mut text, &made);
    let _ = text.write_char('\n');
    let text = &text.bytes[..text.length];
    // SAFETY: the text.
    let _ = unsafe { sys::call!(libc::SYS_write, 2, text.as_ptr(), text.len()) };
}

fn write_sentence(out: &mut Text, made: &Made) -> fmt::Result {
    let name = str::from_utf8(names::program().to_bytes()).unwrap_or("?");
    let pid = std::process::id();
    write!(out, "pirn: {name} ({pid}): ")?;
    if made.is_empty() {
        return out.write_str("the program made no threads");
    }
    let reasons = made.platform.iter().zip(Why::TEXTS);
    let platform: u64 = made.platform.iter().sum();
    write!(
        out,
        "{} virtual and {platform} platform threads",
        made.virtuals
    )?;
    let mut separator = " (";
    for (number, why) in reasons.filter(|(number, _)| **number > 0) {
        write!(out, "{separator}{number} {why}")?;
        separator = ", ";
    }
    if platform > 0 {
        out.write_char(')')?;
    }
    write!(out, ", at most {} at once", made.most)?;
    match runtime::get().map(|runtime| runtime.processors.used().len()) {
        Some(1) => out.write_str("; 1 carrier"),
        Some(carriers) => write!(out, "; {carriers} carriers"),
        None => Ok(()),
    }
}

/// A text of limited length.
struct Text {
    bytes: [u8; 1024],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last byte is for the end of the line.
        let room = self.bytes.len() - 1 - self.length;
        let is_end = text == "\n";
        let taken = if is_end { 1 } else { text.len().min(room) };
        self.bytes[self.length..self.length + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.length += taken;
        if taken == text.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}
