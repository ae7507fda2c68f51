//! The stack of the virtual thread that a platform thread carries: to say what keeps a carrier.

use super::process;
use super::running::Stopped;
use super::stacks::Stacks;
use super::walk::Walker;
use pirn_dump::{Dump, Names, Symbols};
use std::io::{self, Write};

/// The stack of a thread at one moment.
pub struct StoppedStack {
    /// A dump with this stack and nothing else.
    dump: Dump,
}

/// Returns the stack of the virtual thread that is mounted on this platform thread, which is not
/// the calling one, if it can be read. Takes some milliseconds, and stops the thread for some
/// microseconds. If that fails, `again` says whether it is tried once more.
pub fn stack_of(platform: u32, again: impl Fn() -> bool) -> Option<StoppedStack> {
    let mut walker = Walker::new();
    while walker.stop(platform).and_then(Stopped::thread).is_none() {
        if !again() {
            return None;
        }
    }
    let mut stacks = Stacks::new();
    stacks.number_as_it_is(&mut walker.frames, true, &walker.unwinder);
    Some(StoppedStack {
        dump: Dump {
            modules: process::modules(&walker.unwinder.modules),
            stacks: stacks.all,
            ..Dump::default()
        },
    })
}

impl StoppedStack {
    /// Writes at most `most` frames, one per line, innermost first, indented by `indent`. They have
    /// names if the program's files are there, and are addresses in modules otherwise.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, most: usize, indent: &str, out: &mut dyn Write) -> io::Result<()> {
        let names: Names = Symbols::of_self().names(&self.dump);
        let Some(stack) = self.dump.stacks.first() else {
            return Ok(());
        };
        let frames = names.shown(stack);
        for frame in frames.iter().take(most) {
            writeln!(out, "{indent}{frame}")?;
        }
        if frames.len() > most {
            writeln!(out, "{indent}and {} more", frames.len() - most)?;
        }
        Ok(())
    }
}
