//! The page of groups: threads that are alike.

use std::cmp::Ordering;

use pirn_dump::{Group, WaitKind, show};

use super::Pen;
use crate::top::model::{known_by, place_in_short};
use crate::top::table::{Cell, Column, number, text};
use crate::top::text::{age, signed};

pub const COLUMNS: &[Column] = &[
    number("COUNT", 9, 0),
    number("CHANGE", 8, 2),
    text("STATE", 8, 1),
    text("WAITS FOR", 9, 1),
    number("AGE", 7, 3),
    text("SPAWNED AT", 24, 4),
    text("IN", 20, 0),
];

/// Returns the cells of a group.
pub fn cells(pen: Pen<'_>, row: usize) -> Vec<Cell> {
    let theme = pen.theme;
    let Some(view) = &pen.state.scene.view else {
        return Vec::new();
    };
    let dump = view.dump();
    let Some(group) = dump.groups.get(row) else {
        return Vec::new();
    };
    let change = match view.growth_of(row) {
        None => (String::new(), theme.plain()),
        Some(0) => (String::new(), theme.plain()),
        Some(change) => (
            signed(change),
            match change.cmp(&0) {
                Ordering::Greater => theme.notice(),
                _ => theme.good(),
            },
        ),
    };
    let since = group
        .oldest
        .map(|since| dump.process.end.saturating_sub(since));
    let frame = known_by(dump, view.names(), group.stack);
    vec![
        (show::count(group.count), theme.strong()),
        change,
        (group.state.word().into(), theme.state(group.state)),
        (
            kind(group, show::futex(group, dump, view.names())),
            theme.plain(),
        ),
        (since.map(age).unwrap_or_default(), theme.plain()),
        (
            place_in_short(dump, group.place).unwrap_or_default(),
            theme.faint(),
        ),
        (
            frame.map(ToString::to_string).unwrap_or_default(),
            theme.plain(),
        ),
    ]
}

/// Returns the kind of wait in a word, with a mark if it ends at some time. `futex`: what a futex
/// belongs to.
fn kind(group: &Group, futex: Option<&str>) -> String {
    let word = match group.wait {
        WaitKind::None => return String::new(),
        wait => futex.unwrap_or(wait.word()),
    };
    // A sleep always does.
    let mark = if group.timed && group.wait != WaitKind::Sleep {
        "…"
    } else {
        ""
    };
    format!("{word}{mark}")
}
