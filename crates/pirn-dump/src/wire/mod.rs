//! The wire form of a dump: written while it is made, read by a program that trusts no writer.
//!
//! ```text
//!  "PIRNDUMP" | version u32 | block | block | ... | end block
//!
//!  block      | tag u32 | length u32 | record | record | ...
//!  record     | length u32 | fields
//! ```
//!
//! All numbers are little-endian. A block has records of one kind, at most 64 KiB of them
//! (or one longer record), so a writer holds no more than that. The end block, with tag 0, has a
//! length of 0: what stops before it is incomplete.
//!
//! Readers skip blocks with unknown tags, and bytes at the end of a record that they do not know,
//! so that kinds of records and fields can be added. The version changes if old readers would
//! misunderstand what is written.

mod decode;
mod encode;
mod error;
mod fields;
#[cfg(test)]
mod tests;

pub use encode::Encoder;
pub use error::DecodeError;

use crate::Dump;
use std::io::{self, Read, Write};

const MAGIC: &[u8; 8] = b"PIRNDUMP";

/// The version of the wire form that this crate writes, and the only one that it reads.
pub const VERSION: u32 = 1;

/// A writer ends a block when it has this many bytes.
const BLOCK: usize = 64 * 1024;

/// A reader refuses longer blocks.
const LONGEST_BLOCK: u32 = 16 * 1024 * 1024;

/// What a record may name at most: threads of a finding, frames of a stack, examples of a group.
/// Writers leave the others out, so that records are shorter than a block may be.
const LONGEST_LIST: usize = 1_000_000;

/// The longest text or name that is written, in bytes. What is longer is cut off.
const LONGEST_TEXT: usize = 64 * 1024;

/// What is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Tag {
    End = 0,
    Process = 1,
    Totals = 2,
    Carriers = 3,
    Modules = 4,
    Places = 5,
    Stacks = 6,
    Scopes = 7,
    Groups = 8,
    Threads = 9,
    Findings = 10,
    Memory = 11,
}

impl Tag {
    const ALL: [Tag; 12] = [
        Tag::End,
        Tag::Process,
        Tag::Totals,
        Tag::Carriers,
        Tag::Modules,
        Tag::Places,
        Tag::Stacks,
        Tag::Scopes,
        Tag::Groups,
        Tag::Threads,
        Tag::Findings,
        Tag::Memory,
    ];

    fn numbered(number: u32) -> Option<Tag> {
        Tag::ALL.get(number as usize).copied()
    }

    fn word(self) -> &'static str {
        match self {
            Tag::End => "end",
            Tag::Process => "process",
            Tag::Totals => "totals",
            Tag::Carriers => "carriers",
            Tag::Modules => "modules",
            Tag::Places => "places",
            Tag::Stacks => "stacks",
            Tag::Scopes => "scopes",
            Tag::Groups => "groups",
            Tag::Threads => "threads",
            Tag::Findings => "findings",
            Tag::Memory => "memory",
        }
    }
}

impl Dump {
    /// Writes the dump in its wire form.
    ///
    /// A process that does not want to hold the whole dump uses an [`Encoder`].
    ///
    /// # Errors
    /// The writer's.
    ///
    /// # Examples
    /// ```
    /// use pirn_dump::Dump;
    /// let mut bytes = Vec::new();
    /// Dump::default().write_to(&mut bytes)?;
    /// assert_eq!(Dump::read_from(&bytes[..])?, Dump::default());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to(&self, out: impl Write) -> io::Result<()> {
        let mut encoder = Encoder::new(out)?;
        encoder.process(&self.process)?;
        encoder.totals(&self.totals)?;
        self.carriers
            .iter()
            .try_for_each(|it| encoder.carrier(it))?;
        self.modules.iter().try_for_each(|it| encoder.module(it))?;
        self.places.iter().try_for_each(|it| encoder.place(it))?;
        self.stacks.iter().try_for_each(|it| encoder.stack(it))?;
        self.scopes.iter().try_for_each(|it| encoder.scope(it))?;
        self.groups.iter().try_for_each(|it| encoder.group(it))?;
        self.threads.iter().try_for_each(|it| encoder.thread(it))?;
        self.findings
            .iter()
            .try_for_each(|it| encoder.finding(it))?;
        self.memory.iter().try_for_each(|it| encoder.memory(it))?;
        encoder.finish()?;
        Ok(())
    }

    /// Reads a dump in its wire form, of at most 4 GiB.
    ///
    /// The bytes need not be a dump: whatever they are, the result is a dump whose indices are
    /// valid, or an error, and memory is used in proportion to what was read.
    ///
    /// # Errors
    /// The reader's, and a [`DecodeError`] that says what is wrong and where.
    pub fn read_from(source: impl Read) -> Result<Dump, DecodeError> {
        decode::dump(source.take(4 << 30))
    }
}
