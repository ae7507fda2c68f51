//! JSON by serde, laid out as the JDK's dumps are, and without text that does something to a
//! terminal or a page.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// Writes a value while it is made.
pub(super) fn write(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let layout = Layout { levels: 0 };
    value.serialize(&mut serde_json::Serializer::with_formatter(out, layout))?;
    Ok(())
}

/// What a format writes as an object. The context is what it must know of the rest of the dump.
pub(super) trait Object<C> {
    fn members<M: SerializeMap>(&self, context: &C, out: &mut Members<M>) -> Done<M>;
}

pub(super) type Done<M> = Result<(), <M as SerializeMap>::Error>;

/// The members of an object.
pub(super) struct Members<M>(M);

impl<M: SerializeMap> Members<M> {
    pub fn put(&mut self, name: &str, value: impl Serialize) -> Done<M> {
        self.0.serialize_entry(name, &value)
    }

    /// Writes a member if it has a value.
    pub fn maybe(&mut self, name: &str, value: Option<impl Serialize>) -> Done<M> {
        value.map_or(Ok(()), |value| self.put(name, value))
    }
}

/// An object in its context.
pub(super) struct In<'a, C, T>(pub &'a C, pub &'a T);

impl<C, T: Object<C>> Serialize for In<'_, C, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = Members(serializer.serialize_map(None)?);
        self.1.members(self.0, &mut members)?;
        members.0.end()
    }
}

/// An array of objects.
pub(super) struct All<'a, C, I>(pub &'a C, pub I);

impl<'a, C, T: Object<C> + 'a, I: Iterator<Item = &'a T> + Clone> Serialize for All<'_, C, I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.clone().map(|it| In(self.0, it)))
    }
}

/// Each member, item and closing bracket is on a line of its own, with two blanks per level.
/// serde's `PrettyFormatter` writes empty arrays on one line, which the JDK does not.
struct Layout {
    levels: usize,
}

impl Layout {
    fn open<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.levels += 1;
        out.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.levels -= 1;
        self.line(out, true)?;
        out.write_all(bracket)
    }

    fn line<W: ?Sized + Write>(&self, out: &mut W, first: bool) -> io::Result<()> {
        const BLANKS: &[u8] = &[b' '; 32];
        out.write_all(if first { b"\n" } else { b",\n" })?;
        // No format has more than 16 levels.
        out.write_all(&BLANKS[..(2 * self.levels).min(BLANKS.len())])
    }
}

impl Formatter for Layout {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.line(out, first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.line(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    /// Escapes what serde does not.
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        // Most text has none of it, which this loop, without a branch, finds out quickly.
        if (text.bytes()).fold(true, |plain, byte| plain & (byte != b'/') & (byte < 0x7f)) {
            return out.write_all(text.as_bytes());
        }
        for part in text.split_inclusive(is_unsafe) {
            let last = part.chars().next_back().filter(|c| is_unsafe(*c));
            let plain = part.len() - last.map_or(0, char::len_utf8);
            out.write_all(&part.as_bytes()[..plain])?;
            match last {
                // So that the text cannot end a script in a page. The JDK does it, too.
                Some('/') => out.write_all(b"\\/")?,
                Some(c) => write!(out, "\\u{:04x}", u32::from(c))?,
                None => {}
            }
        }
        Ok(())
    }
}

/// Whether it is a slash, one of the second controls, or a line end of JavaScript.
fn is_unsafe(c: char) -> bool {
    matches!(c, '/' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}')
}
