//! Dumps as text for people.

pub(crate) mod escape;
pub(crate) mod futex;
mod head;
pub(crate) mod stack;
#[cfg(test)]
mod tests;
mod tree;
pub(crate) mod words;

pub(crate) use tree::tree;

use crate::model::{Group, Thread, WaitKind};
use crate::view::Shown;
use escape::Plain;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};
use words::{Count, Duration, People};

/// Writes groups of threads that are alike.
pub(crate) fn groups(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    head::write(shown, out)?;
    let people = People::of(shown.dump);
    let max = shown.view.max.unwrap_or(usize::MAX);
    for group in shown.dump.groups.iter().take(max) {
        writeln!(out)?;
        write_group(shown, group, &people, out)?;
    }
    let rest = shown.dump.groups.get(max..).unwrap_or_default();
    if !rest.is_empty() {
        let threads = rest.iter().map(|group| group.count).sum();
        writeln!(
            out,
            "\n{} more, {}",
            words::counted(rest.len() as u64, "group"),
            words::counted(threads, "thread")
        )?;
    }
    Ok(())
}

/// Writes a group: what it is, where it was spawned, examples, the stack.
pub(crate) fn write_group(
    shown: &Shown<'_>,
    group: &Group,
    people: &People<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(
        out,
        "{} {}",
        words::counted(group.count, "thread"),
        group.state.word()
    )?;
    let kind = words::kind(group.wait);
    if !kind.is_empty() {
        write!(out, " {kind}")?;
    }
    if let Some(word) = futex::of_group(group, shown.dump, shown.names) {
        write!(out, " ({word})")?;
    }
    if group.timed && group.wait != WaitKind::Sleep {
        write!(out, ", with a time limit")?;
    }
    if let Some(age) = age(shown, group.oldest) {
        write!(out, ", the longest for at least {age}")?;
    }
    writeln!(out)?;
    write_place(shown, group.place, out)?;
    if let (Some(object), 2.., WaitKind::Lock(_)) = (group.object, group.count, group.wait) {
        writeln!(out, "    all at {}", words::place(object, shown.names))?;
    }
    for example in &group.examples {
        if let Some(thread) = shown.dump.threads.get(*example as usize) {
            writeln!(out, "    {}", described(shown, thread, people, false))?;
        }
    }
    if group.count > group.examples.len() as u64 && !group.examples.is_empty() {
        writeln!(
            out,
            "    and {} more",
            Count(group.count - group.examples.len() as u64)
        )?;
    }
    stack::write(shown, group.stack, "      ", out)
}

/// Writes one thread after the other.
pub(crate) fn threads(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    head::write(shown, out)?;
    let people = People::of(shown.dump);
    let max = shown.view.max.unwrap_or(usize::MAX);
    // A million threads have some hundred stacks.
    let mut stacks: HashMap<Option<u32>, Vec<u8>> = HashMap::new();
    for thread in shown.dump.threads.iter().take(max) {
        writeln!(out, "\n{}", described(shown, thread, &people, true))?;
        write_place(shown, thread.place, out)?;
        let stack = match stacks.entry(thread.stack) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let mut text = Vec::new();
                stack::write(shown, thread.stack, "    ", &mut text)?;
                entry.insert(text)
            }
        };
        out.write_all(stack)?;
    }
    let rest =
        (shown.dump.totals.listed as usize).saturating_sub(max.min(shown.dump.threads.len()));
    if rest > 0 {
        writeln!(out, "\n{} more", words::counted(rest as u64, "thread"))?;
    }
    Ok(())
}

fn write_place(shown: &Shown<'_>, place: Option<u32>, out: &mut dyn Write) -> io::Result<()> {
    let Some(place) = place.and_then(|index| shown.dump.places.get(index as usize)) else {
        return Ok(());
    };
    let file = stack::short(&place.file);
    writeln!(
        out,
        "    spawned at {}:{}:{}",
        Plain(file.as_bytes()),
        place.line,
        place.column
    )
}

/// Returns how long something has been seen waiting. The first dump sees all for the first time.
fn age(shown: &Shown<'_>, since: Option<u64>) -> Option<Duration> {
    let age = shown.dump.process.end.saturating_sub(since?);
    (age >= 100_000_000).then_some(Duration(age))
}

/// Describes a thread in a line: id, name, what it waits for, for how long.
fn described(shown: &Shown<'_>, thread: &Thread, people: &People<'_>, with_state: bool) -> String {
    let mut parts = Vec::new();
    if with_state {
        parts.push(thread.state.word().to_string());
    }
    if !thread.works_for.is_empty() {
        parts.push(format!("works for {}", words::works_for(thread)));
    }
    let wait = words::wait(&thread.wait, &|id| people.called(id), shown.names);
    if !wait.is_empty() {
        parts.push(wait);
    }
    let now = shown.dump.process.end;
    if let Some(until) = thread.until {
        parts.push(match until.checked_sub(now) {
            Some(left) => format!("{} left", Duration(left)),
            None => format!("due since {}", Duration(now - until)),
        });
    }
    if let Some(age) = age(shown, thread.unmoved_since) {
        parts.push(format!("for at least {age}"));
    }
    if let Some(carrier) = thread.carrier {
        parts.push(format!("on carrier {carrier}"));
    }
    if thread.interrupted {
        parts.push("interrupted".to_string());
    }
    if !thread.is_virtual {
        parts.push("a platform thread".to_string());
    }
    let mut text = people.called(thread.id);
    if !parts.is_empty() {
        text += "  ";
        text += &parts.join(", ");
    }
    text
}
