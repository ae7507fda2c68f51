//! Folded stacks, for flame graphs: `outermost;...;innermost COUNT`.

use crate::text::escape::Plain;
use crate::view::Shown;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes a dump.
pub(crate) fn write(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for group in &shown.dump.groups {
        let frames = shown
            .stack(group.stack)
            .map_or_else(Vec::new, |(_, frames)| frames);
        // A semicolon would be the end of a name.
        let name = |name: String| Plain(name.as_bytes()).to_string().replace(';', ":");
        let mut names: Vec<String> = frames
            .iter()
            .rev()
            .map(|frame| name(frame.name()))
            .collect();
        if names.is_empty() {
            names.push("(no stack)".to_string());
        }
        let count = lines.entry(names.join(";")).or_default();
        *count = count.saturating_add(group.count);
    }
    lines
        .iter()
        .try_for_each(|(stack, count)| writeln!(out, "{stack} {count}"))
}
