//! Dumps as a tree of scopes.

use super::escape::Quoted;
use super::words::{self, Count, People, counted};
use super::{described, head, stack};
use crate::model::{Scope, Thread};
use crate::names::Frame;
use crate::scopes::{self, Placed};
use crate::view::Shown;
use std::collections::HashMap;
use std::io::{self, Write};

/// How many threads of one kind are shown in a scope.
const EXAMPLES: usize = 3;

/// Deeper scopes are not indented further.
const DEEPEST_INDENT: usize = 32;

/// Writes the tree of scopes: below each its subtasks, those that are alike together, and the
/// scopes that were opened in it.
///
/// ```text
/// scope 7 "orders", owned by #2 "main", 1,000 subtasks
/// |   #17 "order-1"  read fd 12, ...
/// |   998 more like it: waiting, recv at ...
/// |   scope 8, owned by #17 "order-1", 2 subtasks
/// ```
pub(crate) fn tree(shown: &Shown<'_>, out: &mut dyn Write) -> io::Result<()> {
    head::write(shown, out)?;
    writeln!(out)?;
    let people = People::of(shown.dump);
    let members = scopes::members(shown.dump);
    let scopes = scopes::in_order(shown.dump);
    writeln!(
        out,
        "in no scope, {}",
        counted(members.get(&None).map_or(0, Vec::len) as u64, "thread")
    )?;
    write_members(shown, members.get(&None), 1, &people, out)?;
    let max = shown.view.max.unwrap_or(usize::MAX);
    for Placed { scope, depth, .. } in scopes.iter().take(max) {
        writeln!(out, "{}{}", indent(*depth), title(scope, &people))?;
        write_members(shown, members.get(&Some(scope.id)), depth + 1, &people, out)?;
    }
    match scopes.len().saturating_sub(max) {
        0 => Ok(()),
        rest => writeln!(out, "\n{} more", counted(rest as u64, "scope")),
    }
}

fn indent(depth: usize) -> String {
    "|   ".repeat(depth.min(DEEPEST_INDENT))
}

fn title(scope: &Scope, people: &People<'_>) -> String {
    let mut title = format!("scope {}", scope.id);
    if let Some(name) = &scope.name {
        title += &format!(" {}", Quoted(name.as_bytes()));
    }
    if scope.cancelled {
        title += ", cancelled";
    }
    if let Some(owner) = scope.owner {
        title += &format!(", owned by {}", people.called(owner));
    }
    title + &format!(", {}", counted(scope.members, "subtask"))
}

/// Writes the threads of a scope, those that are alike together, most first.
fn write_members(
    shown: &Shown<'_>,
    members: Option<&Vec<&Thread>>,
    depth: usize,
    people: &People<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut numbers = HashMap::new();
    let mut alike: Vec<Vec<&Thread>> = Vec::new();
    for thread in members.into_iter().flatten() {
        let number = *numbers
            .entry((thread.state, thread.wait.kind(), thread.stack))
            .or_insert_with(|| {
                alike.push(Vec::new());
                alike.len() - 1
            });
        alike[number].push(thread);
    }
    alike.sort_by_key(|threads| std::cmp::Reverse(threads.len()));
    let indent = indent(depth);
    for threads in &alike {
        let top = top(shown, threads[0]);
        for thread in threads.iter().take(EXAMPLES) {
            writeln!(
                out,
                "{indent}{}{top}",
                described(shown, thread, people, true)
            )?;
        }
        if threads.len() > EXAMPLES {
            let wait = words::kind(threads[0].wait.kind());
            let rest = Count((threads.len() - EXAMPLES) as u64);
            writeln!(
                out,
                "{indent}and {rest} more {} {wait}{top}",
                threads[0].state.word()
            )?;
        }
    }
    Ok(())
}

/// Returns the innermost function that is likely to be the program's own, as the end of a line.
fn top(shown: &Shown<'_>, thread: &Thread) -> String {
    let Some((_, frames)) = shown.stack(thread.stack) else {
        return String::new();
    };
    let of_program = |frame: &&&Frame| {
        frame
            .file
            .as_ref()
            .is_some_and(|file| !stack::short(file).starts_with("library/"))
    };
    // The runtime has source files, too, also for functions of C.
    let of_rust =
        |frame: &&&Frame| of_program(frame) && frame.name().contains("::") && !frame.is_runtime();
    let known = frames
        .iter()
        .find(of_rust)
        .or_else(|| frames.iter().find(of_program));
    known
        .or(frames.first())
        .map_or_else(String::new, |frame| format!("; {}", stack::line(frame)))
}
