//! What is to be shown, and in which format.

use crate::model::{Dump, Stack};
use crate::names::{Frame, Names};
use std::io::{self, Write};
use std::str::FromStr;

/// How a dump is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Text: groups of threads, largest first.
    Text,
    /// Text: one thread after the other.
    Threads,
    /// Text: the tree of scopes, with the threads in each.
    Tree,
    /// JSON with all that is known; `schema/dump.schema.json` describes it.
    #[cfg(feature = "formats")]
    Json,
    /// The JSON of the JDK's `Thread.dump_to_file`, version 27 and later.
    #[cfg(feature = "formats")]
    Jdk,
    /// The same of version 25, in which numbers of 64 bits are strings.
    #[cfg(feature = "formats")]
    Jdk25,
    /// A compressed profile for `pprof`: threads per stack.
    #[cfg(feature = "formats")]
    Pprof,
    /// A line per stack, with a number, for flame graphs.
    #[cfg(feature = "formats")]
    Folded,
}

impl Format {
    const NAMES: &[(&str, Format)] = &[
        ("text", Format::Text),
        ("threads", Format::Threads),
        ("tree", Format::Tree),
        #[cfg(feature = "formats")]
        ("json", Format::Json),
        #[cfg(feature = "formats")]
        ("jdk", Format::Jdk),
        #[cfg(feature = "formats")]
        ("jdk25", Format::Jdk25),
        #[cfg(feature = "formats")]
        ("pprof", Format::Pprof),
        #[cfg(feature = "formats")]
        ("folded", Format::Folded),
    ];

    /// Returns the names of all formats, which [`FromStr`] takes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Format::NAMES.iter().map(|(name, _)| *name)
    }

    /// Whether the format shows each thread, so that a dump for it should list
    /// [all](Dump::lists_all). The others show groups.
    pub fn needs_all_threads(self) -> bool {
        match self {
            Format::Threads | Format::Tree => true,
            #[cfg(feature = "formats")]
            Format::Jdk | Format::Jdk25 => true,
            _ => false,
        }
    }

    /// Writes a dump in this format.
    ///
    /// # Errors
    /// The writer's.
    ///
    /// # Examples
    /// ```
    /// use pirn_dump::{Dump, Format, Names, View};
    /// let (dump, mut text) = (Dump::default(), Vec::new());
    /// Format::Text.write(&dump, &Names::plain(&dump), &View::default(), &mut text)?;
    /// assert!(String::from_utf8(text).unwrap().contains("0 virtual threads"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn write(
        self,
        dump: &Dump,
        names: &Names,
        view: &View,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let shown = Shown { dump, names, view };
        match self {
            Format::Text => crate::text::groups(&shown, out),
            Format::Threads => crate::text::threads(&shown, out),
            Format::Tree => crate::text::tree(&shown, out),
            #[cfg(feature = "formats")]
            Format::Json => crate::formats::json(&shown, out),
            #[cfg(feature = "formats")]
            Format::Jdk => crate::formats::jdk(&shown, crate::formats::Edition::Jdk27, out),
            #[cfg(feature = "formats")]
            Format::Jdk25 => crate::formats::jdk(&shown, crate::formats::Edition::Jdk25, out),
            #[cfg(feature = "formats")]
            Format::Pprof => crate::formats::pprof(&shown, out),
            #[cfg(feature = "formats")]
            Format::Folded => crate::formats::folded(&shown, out),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        let known = Format::NAMES.iter().find(|(known, _)| *known == name);
        known.map(|(_, format)| *format).ok_or_else(|| {
            let names: Vec<&str> = Format::names().collect();
            format!(
                "there is no format {name:?}: it is one of {}",
                names.join(", ")
            )
        })
    }
}

/// What of a dump is shown.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Whether stacks have the frames of the runtime, too.
    pub runtime_frames: bool,
    /// How many groups, threads or scopes are shown at most, in text. What is left out is counted.
    pub max: Option<usize>,
}

/// A dump with names, and what of it is shown.
pub(crate) struct Shown<'a> {
    pub dump: &'a Dump,
    pub names: &'a Names,
    pub view: &'a View,
}

impl<'a> Shown<'a> {
    /// Returns a stack and its frames.
    pub fn stack(&self, index: Option<u32>) -> Option<(&'a Stack, Vec<&'a Frame>)> {
        let stack = self.dump.stacks.get(index? as usize)?;
        Some((stack, self.frames(stack)))
    }

    /// Returns the frames of a stack, innermost first.
    pub fn frames(&self, stack: &Stack) -> Vec<&'a Frame> {
        if self.view.runtime_frames {
            self.names.all(stack)
        } else {
            self.names.shown(stack)
        }
    }
}
