//! Stacks as text.

use super::escape::Plain;
use crate::model::End;
use crate::names::Frame;
use crate::view::Shown;
use std::io::{self, Write};

/// Writes a stack, each frame on a line of its own.
pub(super) fn write(
    shown: &Shown<'_>,
    index: Option<u32>,
    indent: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some((stack, frames)) = shown.stack(index) else {
        return writeln!(out, "{indent}(no stack)");
    };
    for frame in frames {
        writeln!(out, "{indent}{}", line(frame))?;
    }
    match stack.end {
        End::Complete => Ok(()),
        End::TooDeep => writeln!(out, "{indent}(and deeper)"),
        End::Lost => writeln!(out, "{indent}(what called it is not known)"),
        End::Unsure => writeln!(out, "{indent}(read while it ran: frames may be wrong)"),
        End::Switching => writeln!(out, "{indent}(in the middle of a switch)"),
    }
}

/// Returns a frame as text: `server::handle at src/main.rs:12`.
pub(crate) fn line(frame: &Frame) -> String {
    let mut line = Plain(frame.name().as_bytes()).to_string();
    if let Some(file) = &frame.file {
        line += &format!(" at {}", Plain(short(file).as_bytes()));
        if let Some(number) = frame.line {
            line += &format!(":{number}");
        }
    } else if let (Some(_), Some(module)) = (&frame.function, &frame.module) {
        line += &format!(" in {}", Plain(module.as_bytes()));
    }
    line
}

/// Returns what is of interest of the path of a source file: the standard library's and a crate's
/// begin with their name.
pub(crate) fn short(path: &str) -> &str {
    for (marker, skip) in [
        ("/library/", 1),
        ("/registry/src/", 14),
        ("/git/checkouts/", 15),
    ] {
        let Some(at) = path.find(marker) else {
            continue;
        };
        let rest = &path[at + skip..];
        if marker == "/library/" {
            // Only below /rustc/HASH: others may have folders of that name.
            if path.starts_with("/rustc/") || path.contains("/rustlib/") {
                return rest;
            }
        } else if let Some((_, file)) = rest.split_once('/') {
            return file;
        }
    }
    path
}
