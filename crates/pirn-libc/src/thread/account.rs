//! What threads a program has made, and why not all are virtual: one sentence for its operator.

use super::policy::{self, Made, Why};
use core::ffi::{CStr, c_char};
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use pirn_rt::{runtime, sys};

unsafe extern "C" {
    /// The last component of the program's name.
    static program_invocation_short_name: *const c_char;
}

/// Whether this process is the child of a fork.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

/// Begins to count anew, in the child of a fork.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn pirn_forget_pthreads() {
    IS_FORKED.store(true, Relaxed); // Relaxed: there is one thread.
    policy::forget();
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
    let made = policy::made();
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
    // SAFETY: libc's own C string, and a call without arguments.
    let (name, pid) = unsafe {
        (
            CStr::from_ptr(program_invocation_short_name),
            libc::getpid(),
        )
    };
    let name = str::from_utf8(name.to_bytes()).unwrap_or("?");
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
