//! The stack of a group or of a thread, and what else is known of it.

use std::time::Instant;

use pirn_dump::{Dump, End, Frame, Group, Names, Place, Thread, WaitKind, show};

use super::{Page, Scene, View};
use crate::top::text;

/// A page about one group or thread, as it was in one dump: it stays while others are taken.
#[derive(Clone, Debug)]
pub struct StackPage {
    pub title: String,
    pub lines: Vec<Line>,
    pub taken: Instant,
}

/// A line of such a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Empty,
    /// What it is, and its value.
    Fact(&'static str, String),
    /// A thread of the group.
    Thread(String),
    /// A function of the program.
    Own(String),
    /// A function of a library.
    Library(String),
    Note(String),
}

impl StackPage {
    /// Returns the page about a row of another page.
    pub(super) fn of(page: Page, row: usize, scene: &Scene) -> Option<StackPage> {
        let view = scene.view.as_ref()?;
        let dump = view.dump();
        match page {
            Page::Groups => Some(of_group(dump.groups.get(row)?, view, scene)),
            Page::Threads => Some(of_thread(dump.threads.get(row)?, view, scene)),
            Page::Carriers => {
                let carrier = scene.carriers().get(row)?.number;
                Some(of_carrier(carrier, view, scene))
            }
        }
    }
}

fn of_group(group: &Group, view: &View, scene: &Scene) -> StackPage {
    let (dump, names) = (view.dump(), view.names());
    let title = format!(
        "{} {} {}",
        show::counted(group.count, "thread"),
        group.state.word(),
        show::kind(group.wait)
    );
    let title = match show::futex(group, dump, names) {
        Some(word) => format!("{title} ({word})"),
        None => title,
    };
    let mut lines = Vec::new();
    if let Some(frame) = known_by(dump, names, group.stack) {
        lines.push(Line::Fact("in", show::frame(frame)));
    }
    if let Some(place) = place(dump, group.place) {
        lines.push(Line::Fact("spawned at", place));
    }
    if let (Some(address), WaitKind::Lock(_)) = (group.object, group.wait) {
        let variable = names.variable(address);
        let variable = variable.map_or_else(String::new, |it| format!(" ({it})"));
        lines.push(Line::Fact("all at", format!("{address:#x}{variable}")));
    }
    if group.timed && group.wait != WaitKind::Sleep {
        lines.push(Line::Fact("limit", "each wait has a time limit".into()));
    }
    if let Some(age) = age(dump, group.oldest) {
        lines.push(Line::Fact("longest", format!("at least {age}")));
    }
    if let Some(growth) = scene.growth_in_words(view, group) {
        lines.push(Line::Fact("change", growth));
    }
    lines.push(Line::Empty);
    let examples = group.examples.iter();
    let examples = examples.filter_map(|index| dump.threads.get(*index as usize));
    lines.extend(examples.map(|it| Line::Thread(thread_in_words(it, dump, names, scene))));
    let others = group.count.saturating_sub(group.examples.len() as u64);
    if others > 0 {
        lines.push(Line::Note(format!("and {} more", show::count(others))));
    }
    lines.push(Line::Empty);
    frames(dump, names, group.stack, &mut lines);
    StackPage {
        title: title.trim_end().into(),
        lines,
        taken: view.snapshot.taken,
    }
}

fn of_thread(thread: &Thread, view: &View, scene: &Scene) -> StackPage {
    let (dump, names) = (&view.snapshot.dump, view.names());
    let mut lines = vec![Line::Fact("state", thread.state.word().into())];
    let wait = show::wait(&thread.wait, names, &|id| scene.called(id));
    let mut add = |label, value: Option<String>| {
        lines.extend(value.map(|value| Line::Fact(label, value)));
    };
    add("waits for", (!wait.is_empty()).then_some(wait));
    add("until", until(thread, dump));
    add(
        "since",
        age(dump, thread.unmoved_since).map(|age| format!("at least {age}")),
    );
    let rate = view.snapshot.mounts_per_second(thread);
    let rate = rate.map_or_else(String::new, |rate| {
        format!(", {} per second", text::rate(rate))
    });
    add(
        "mounted",
        Some(format!("{} times{rate}", show::count(thread.mounts))),
    );
    add("carrier", thread.carrier.map(|number| number.to_string()));
    add(
        "interrupted",
        thread.interrupted.then(|| "but has not noticed yet".into()),
    );
    add("scope", thread.scope.map(|id| scope(dump, id)));
    add(
        "stack used",
        thread
            .stack_bytes
            .map(|bytes| show::bytes(u64::from(bytes))),
    );
    add("spawned at", place(dump, thread.place));
    lines.push(Line::Empty);
    frames(dump, names, thread.stack, &mut lines);
    StackPage {
        title: format!("thread {}", scene.called(thread.id)),
        lines,
        taken: view.snapshot.taken,
    }
}

/// The page about the thread that a carrier ran.
fn of_carrier(number: u32, view: &View, scene: &Scene) -> StackPage {
    let snapshot = &view.snapshot;
    let mounted = scene.mounted(number);
    if let Some(thread) = mounted.and_then(|id| snapshot.thread(id)) {
        return of_thread(thread, view, scene);
    }
    let note = match mounted {
        Some(id) => format!("it ran #{id}, which is not in this dump"),
        None => "it ran no virtual thread, or has begun to run one since the dump".into(),
    };
    StackPage {
        title: format!("carrier {number}"),
        lines: vec![Line::Note(note)],
        taken: snapshot.taken,
    }
}

impl Scene {
    /// Returns by how much a group has grown, and in which time.
    fn growth_in_words(&self, view: &View, group: &Group) -> Option<String> {
        let groups = &view.dump().groups;
        let row = groups.iter().position(|it| std::ptr::eq(it, group))?;
        let (_, window) = view.growth.as_ref()?;
        let change = text::signed(view.growth_of(row)?);
        Some(format!(
            "{change} in {}",
            show::duration(window.as_nanos() as u64)
        ))
    }
}

fn thread_in_words(thread: &Thread, dump: &Dump, names: &Names, scene: &Scene) -> String {
    let mut text = scene.called(thread.id);
    let wait = show::wait(&thread.wait, names, &|id| scene.called(id));
    let age = age(dump, thread.unmoved_since).map(|age| format!("for at least {age}"));
    let parts = [
        Some(wait).filter(|it| !it.is_empty()),
        until(thread, dump),
        age,
    ];
    for (number, part) in parts.into_iter().flatten().enumerate() {
        text += if number == 0 { "  " } else { ", " };
        text += &part;
    }
    text
}

/// Returns when a thread's wait ends.
fn until(thread: &Thread, dump: &Dump) -> Option<String> {
    let (until, now) = (thread.until?, dump.process.end);
    Some(match until.checked_sub(now) {
        Some(left) => format!("{} left", show::duration(left)),
        None => format!("due since {}", show::duration(now - until)),
    })
}

fn age(dump: &Dump, since: Option<u64>) -> Option<String> {
    let age = dump.process.end.saturating_sub(since?);
    (age >= 100_000_000).then(|| show::duration(age))
}

fn scope(dump: &Dump, id: u64) -> String {
    let scope = dump.scopes.iter().find(|scope| scope.id == id);
    let name = scope.and_then(|scope| scope.name.as_ref());
    name.map_or(id.to_string(), |it| {
        format!("{id} {}", show::quoted(it.as_bytes()))
    })
}

/// Returns where something was spawned.
fn place(dump: &Dump, place: Option<u32>) -> Option<String> {
    let Place { file, line, .. } = dump.places.get(place? as usize)?;
    Some(format!("{}:{line}", show::path(file)))
}

/// Returns where something was spawned, for a narrow column: with the last folder of the path.
pub fn place_in_short(dump: &Dump, place: Option<u32>) -> Option<String> {
    let Place { file, line, .. } = dump.places.get(place? as usize)?;
    let path = show::path(file);
    let folder = path.rmatch_indices('/').nth(1);
    let short = folder.map_or(path.as_str(), |(at, _)| &path[at + 1..]);
    Some(format!("{short}:{line}"))
}

/// Adds the frames of a stack.
fn frames(dump: &Dump, names: &Names, stack: Option<u32>, lines: &mut Vec<Line>) {
    let Some(stack) = stack.and_then(|index| dump.stacks.get(index as usize)) else {
        return lines.push(Line::Note(
            "it has no stack yet, or was running at each look".into(),
        ));
    };
    for frame in names.shown(stack) {
        let text = show::frame(frame);
        lines.push(match is_own(frame) {
            true => Line::Own(text),
            false => Line::Library(text),
        });
    }
    let note = match stack.end {
        End::Complete => return,
        End::TooDeep => "(and deeper)",
        End::Lost => "(what called it is not known)",
        End::Unsure => "(read while it ran: frames may be wrong)",
        End::Switching => "(in the middle of a switch)",
    };
    lines.push(Line::Note(note.into()));
}

/// Whether a frame is of the program itself, as far as one can see: its source belongs neither to
/// the standard library nor to a crate from a registry.
fn is_own(frame: &Frame) -> bool {
    let Some(file) = &frame.file else {
        return false;
    };
    let shown = show::path(file);
    !shown.starts_with("library/")
        && shown == show::plain(file.as_bytes())
        && !frame.is_of_runtime()
}

/// Returns the frame by which people know a stack: the innermost of the program itself.
pub fn known_by<'a>(dump: &Dump, names: &'a Names, stack: Option<u32>) -> Option<&'a Frame> {
    let stack = dump.stacks.get(stack? as usize)?;
    let frames = names.shown(stack);
    let own = frames.iter().find(|frame| is_own(frame));
    own.or(frames.first()).copied()
}
