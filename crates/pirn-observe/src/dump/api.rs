//! Dumps of all virtual threads, made by the program itself.
//!
//! `pirn::dump()` is all that most programs need. [`Options`] ask for more than
//! groups.

use super::Contents;
use core::fmt;
use pirn_dump::{Format, Symbols, View};
use pirn_rt::vthread::{self, helper::ForcePlatform};
use std::io::{self, Write};

/// What is to be in a dump.
#[derive(Clone, Debug, Default)]
#[must_use = "`take` makes the dump"]
pub struct Options(Contents);

impl Options {
    /// Returns the options of `pirn::dump()`: groups, with three examples of each.
    pub fn new() -> Options {
        Options::default()
    }

    /// Lists each thread, up to this number. A listed thread takes some 200 bytes.
    pub fn list(mut self, most: usize) -> Options {
        self.0.threads = Some(most);
        self
    }

    /// Makes the dump. On a virtual thread this is done by a platform thread, while the virtual one
    /// parks.
    ///
    /// # Panics
    /// If that platform thread cannot be started.
    pub fn take(&self) -> ThreadDump {
        let take = || ThreadDump(super::take(&self.0));
        if vthread::current().is_none() {
            return take();
        }
        let forced = ForcePlatform::helpers();
        let dump = std::thread::scope(|scope| scope.spawn(take).join());
        drop(forced);
        dump.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    }
}

/// What all virtual threads were doing. Its text names the functions, if the program's file is
/// still there.
pub struct ThreadDump(pirn_dump::Dump);

impl ThreadDump {
    /// Returns how many threads were seen.
    pub fn threads(&self) -> u64 {
        self.0.totals.listed
    }

    /// Writes the dump in the form that `pirn dump` reads.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_to(&self, out: impl Write) -> io::Result<()> {
        self.0.write_to(out)
    }
}

impl fmt::Display for ThreadDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        let names = Symbols::of_self().names(&self.0);
        // Writing to memory does not fail.
        let _ = Format::Text.write(&self.0, &names, &View::default(), &mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

impl fmt::Debug for ThreadDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.threads();
        f.debug_struct("ThreadDump")
            .field("threads", &threads)
            .finish_non_exhaustive()
    }
}
