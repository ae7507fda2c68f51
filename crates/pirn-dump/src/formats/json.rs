//! Writing JSON while it is made, laid out as the JDK's dumps are.

use std::io::{self, Write};

/// A value that has no others in it.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Number(u64),
    Signed(i64),
    Text(&'a str),
    /// Text that need not be UTF-8. What is not is replaced.
    Bytes(&'a [u8]),
}

/// Writes objects, arrays and values, each on a line of its own, two blanks per level.
pub(super) struct Json<'a> {
    out: &'a mut dyn Write,
    /// The closing brackets of what is open, and whether there is something in it.
    open: Vec<(u8, bool)>,
}

impl<'a> Json<'a> {
    pub fn new(out: &'a mut dyn Write) -> Json<'a> {
        Json {
            out,
            open: Vec::new(),
        }
    }

    /// Returns what is written in an array that has nothing in it yet, `levels` deep.
    pub fn inside(
        levels: usize,
        write: impl FnOnce(&mut Json<'_>) -> io::Result<()>,
    ) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        write(&mut Json {
            out: &mut text,
            open: vec![(b']', false); levels],
        })?;
        Ok(text)
    }

    /// Returns how deep it is.
    pub fn levels(&self) -> usize {
        self.open.len()
    }

    /// Writes all of an array that has nothing in it yet, as [`inside`](Json::inside) made it.
    pub fn all(&mut self, text: &[u8]) -> io::Result<()> {
        if let Some((_, inhabited)) = self.open.last_mut() {
            *inhabited = !text.is_empty();
        }
        self.out.write_all(text)
    }

    fn begin(&mut self, name: &str) -> io::Result<()> {
        if let Some((_, inhabited)) = self.open.last_mut()
            && std::mem::replace(inhabited, true)
        {
            self.out.write_all(b",\n")?;
        }
        self.indent()?;
        if !name.is_empty() {
            self.out.write_all(b"\"")?;
            self.out.write_all(name.as_bytes())?;
            self.out.write_all(b"\": ")?;
        }
        Ok(())
    }

    fn indent(&mut self) -> io::Result<()> {
        const BLANKS: &[u8] = &[b' '; 32];
        // No format has more than 16 levels.
        self.out
            .write_all(&BLANKS[..(2 * self.open.len()).min(BLANKS.len())])
    }

    /// Opens an object. In an array, and at the top, the name is empty.
    pub fn object(&mut self, name: &str) -> io::Result<()> {
        self.begin(name)?;
        self.open.push((b'}', false));
        self.out.write_all(b"{\n")
    }

    /// Opens an array.
    pub fn array(&mut self, name: &str) -> io::Result<()> {
        self.begin(name)?;
        self.open.push((b']', false));
        self.out.write_all(b"[\n")
    }

    /// Closes what was opened last.
    pub fn close(&mut self) -> io::Result<()> {
        let Some((bracket, inhabited)) = self.open.pop() else {
            return Ok(());
        };
        if inhabited {
            self.out.write_all(b"\n")?;
        }
        self.indent()?;
        self.out.write_all(&[bracket])
    }

    /// Writes a member, or an array's item, whose name is empty.
    pub fn value(&mut self, name: &str, value: Value<'_>) -> io::Result<()> {
        self.begin(name)?;
        match value {
            Value::Null => self.out.write_all(b"null"),
            Value::Bool(value) => write!(self.out, "{value}"),
            Value::Number(value) => write!(self.out, "{value}"),
            Value::Signed(value) => write!(self.out, "{value}"),
            Value::Text(text) => self.text(text.as_bytes()),
            Value::Bytes(bytes) => self.text(bytes),
        }
    }

    pub fn number(&mut self, name: &str, value: impl Into<u64>) -> io::Result<()> {
        self.value(name, Value::Number(value.into()))
    }

    /// Writes a member if it has a value.
    pub fn maybe(&mut self, name: &str, value: Option<impl Into<u64>>) -> io::Result<()> {
        value.map_or(Ok(()), |value| self.number(name, value))
    }

    pub fn string(&mut self, name: &str, value: impl AsRef<str>) -> io::Result<()> {
        self.value(name, Value::Text(value.as_ref()))
    }

    fn text(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(b"\"")?;
        for chunk in bytes.utf8_chunks() {
            escaped(self.out, chunk.valid())?;
            if !chunk.invalid().is_empty() {
                self.out.write_all("\u{fffd}".as_bytes())?;
            }
        }
        self.out.write_all(b"\"")
    }
}

/// Writes text without what would end it, or would do something to a terminal or a page.
fn escaped(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let escape = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            // So that the text cannot end a script in a page. The JDK does it, too.
            '/' => "\\/",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            // The second controls, and the line ends of JavaScript.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => "",
            _ => continue,
        };
        out.write_all(&text.as_bytes()[plain..at])?;
        plain = at + c.len_utf8();
        if escape.is_empty() {
            write!(out, "\\u{:04x}", c as u32)?;
        } else {
            out.write_all(escape.as_bytes())?;
        }
    }
    out.write_all(&text.as_bytes()[plain..])
}
