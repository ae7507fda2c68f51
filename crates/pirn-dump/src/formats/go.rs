//! The text of Go's goroutine profile, `debug=1`.

use crate::text::escape::{Plain, Quoted};
use crate::view::Shown;
use std::io::{self, Write};

/// Writes a dump.
pub(crate) fn write(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    let total = shown
        .dump
        .groups
        .iter()
        .fold(0_u64, |sum, group| sum.saturating_add(group.count));
    writeln!(out, "goroutine profile: total {total}")?;
    for group in &shown.dump.groups {
        let frames = shown
            .stack(group.stack)
            .map_or_else(Vec::new, |(_, frames)| frames);
        write!(out, "{} @", group.count)?;
        for frame in frames.iter().filter(|frame| !frame.inlined) {
            write!(out, " {:#x}", frame.address)?;
        }
        if frames.is_empty() {
            // Readers want an address.
            write!(out, " 0x0")?;
        }
        write!(
            out,
            "\n# labels: {{\"state\":\"{}\", \"wait\":\"{}\"",
            group.state.word(),
            group.wait.word()
        )?;
        if let Some(place) = group
            .place
            .and_then(|index| shown.dump.places.get(index as usize))
        {
            let place = format!("{}:{}", place.file, place.line);
            write!(out, ", \"spawned\":{}", Quoted(place.as_bytes()))?;
        }
        writeln!(out, "}}")?;
        for frame in frames {
            write!(
                out,
                "#\t{:#x}\t{}",
                frame.address,
                Plain(frame.name().as_bytes())
            )?;
            if let (Some(_), Some(offset)) = (&frame.function, frame.offset) {
                write!(out, "+{offset:#x}")?;
            }
            let file = frame
                .file
                .as_deref()
                .or(frame.module.as_deref())
                .unwrap_or("?");
            writeln!(
                out,
                "\t{}:{}",
                Plain(file.as_bytes()),
                frame.line.unwrap_or(0)
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}
