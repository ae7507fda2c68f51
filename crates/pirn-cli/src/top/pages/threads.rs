//! The page of threads.

use pirn_dump::show;

use super::Pen;
use crate::top::model::{known_by, place_in_short};
use crate::top::table::{Cell, Column, number, text};
use crate::top::text::{age, name, rate};

pub const COLUMNS: &[Column] = &[
    number("ID", 9, 0),
    text("NAME", 18, 1),
    text("STATE", 8, 2),
    number("MOUNTS/s", 8, 2),
    number("AGE", 7, 3),
    number("SCOPE", 7, 6),
    text("WAITS FOR", 30, 1),
    text("SPAWNED AT", 24, 5),
    text("IN", 20, 4),
];

/// Returns the cells of a thread.
pub fn cells(pen: Pen<'_>, row: usize) -> Vec<Cell> {
    let (theme, scene) = (pen.theme, &pen.state.scene);
    let Some(view) = &scene.view else {
        return Vec::new();
    };
    let dump = view.dump();
    let Some(thread) = dump.threads.get(row) else {
        return Vec::new();
    };
    let since = thread
        .unmoved_since
        .map(|since| dump.process.end.saturating_sub(since));
    let mounts = view.snapshot.mounts_per_second(thread);
    let wait = match thread.carrier {
        Some(carrier) => format!("on carrier {carrier}"),
        None => show::wait(&thread.wait, view.names(), &|id| scene.called(id)),
    };
    let frame = known_by(dump, view.names(), thread.stack);
    let state = match thread.interrupted {
        true => (format!("{}!", thread.state.word()), theme.bad()),
        false => (thread.state.word().into(), theme.state(thread.state)),
    };
    vec![
        (thread.id.to_string(), theme.strong()),
        (name(thread.name.as_deref()), theme.plain()),
        state,
        (mounts.map(rate).unwrap_or_default(), theme.plain()),
        (since.map(age).unwrap_or_default(), theme.plain()),
        (
            thread.scope.map(|id| id.to_string()).unwrap_or_default(),
            theme.plain(),
        ),
        (wait, theme.plain()),
        (
            place_in_short(dump, thread.place).unwrap_or_default(),
            theme.faint(),
        ),
        (
            frame.map(ToString::to_string).unwrap_or_default(),
            theme.plain(),
        ),
    ]
}
