//! Text from outside, shown without effect on the terminal.

use std::fmt::{self, Display, Write};

/// Text in quotation marks.
pub(crate) struct Quoted<'a>(pub &'a [u8]);

/// Text that stays on its line: paths, and names of functions.
pub(crate) struct Plain<'a>(pub &'a [u8]);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        escaped(f, self.0, |c| matches!(c, '"' | '\\'))?;
        f.write_char('"')
    }
}

impl Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(f, self.0, |_| false)
    }
}

fn escaped(
    f: &mut fmt::Formatter<'_>,
    bytes: &[u8],
    special: impl Fn(char) -> bool,
) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c if special(c) => write!(f, "\\{c}")?,
                c if c.is_ascii_control() => write!(f, "\\x{:02x}", c as u32)?,
                c if has_effect(c) => write!(f, "\\u{{{:x}}}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        for byte in chunk.invalid() {
            write!(f, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

/// Whether a character does something to others: controls, ends of lines, directions of writing,
/// and those without width, by which two names can look the same.
fn has_effect(c: char) -> bool {
    match c {
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{feff}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal() {
        for name in crate::samples::hostile_names() {
            let shown = format!("{}{}", Quoted(name), Plain(name));
            assert!(!shown.chars().any(has_effect), "{shown:?}");
        }
        assert_eq!(
            Quoted(b"a\"b\\\x1b\xff\n").to_string(),
            r#""a\"b\\\x1b\xff\n""#
        );
        assert_eq!(
            Plain("<b> \u{202e}é".as_bytes()).to_string(),
            "<b> \\u{202e}é"
        );
    }
}
