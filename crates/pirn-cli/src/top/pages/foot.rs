//! The lines around the rows: which page it is, how old it is, what can be pressed.

use std::time::Duration;

use pirn_dump::show;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Widget;

use super::Pen;
use crate::top::layout::Layout;
use crate::top::model::{Over, Page};
use crate::top::text::{row, short, whole};
use pirn_live::{Snapshot, Status};

/// Draws the names of the pages.
pub fn tabs(pen: Pen<'_>, area: Rect, buffer: &mut Buffer) {
    let (state, theme) = (pen.state, pen.theme);
    let mut texts = Vec::new();
    for (page, number) in Page::ALL.into_iter().zip(1..) {
        let style = match page == state.page {
            true => theme.chosen(),
            false => theme.plain(),
        };
        texts.push((format!(" {number} {} ", page.title()), style));
        texts.push((" ".into(), theme.plain()));
    }
    texts.push((format!("sorted by {}", state.sort().word()), theme.faint()));
    if !state.conditions.text.is_empty() {
        texts.push(("  where ".into(), theme.label()));
        texts.push((state.conditions.text.clone(), theme.notice()));
    }
    whole(area.width, texts).render(area, buffer);
}

/// Returns why there are no rows.
pub fn nothing(pen: Pen<'_>) -> String {
    let scene = &pen.state.scene;
    match (&scene.view, &scene.trouble, &scene.status) {
        (None, _, Some(Status::Ended(_))) => String::new(),
        (None, Some(trouble), _) => format!("no dump: {trouble}"),
        (None, None, _) if pen.state.page != Page::Carriers => {
            "a dump is being taken …".to_string()
        }
        _ if !pen.state.conditions.text.is_empty() => "no thread meets the conditions".to_string(),
        _ => "there is nothing yet".to_string(),
    }
}

/// Draws the line below the rows.
pub fn status(pen: Pen<'_>, layout: Layout, area: Rect, buffer: &mut Buffer) {
    let (state, theme, width) = (pen.state, pen.theme, area.width);
    let line = match (&state.editing, &state.scene.status) {
        (Some(editing), _) => edit(pen, &editing.text, editing.error.as_deref(), width),
        (None, Some(Status::Ended(why))) => {
            let what = if layout.keys > 0 { ": q ends" } else { "" };
            row(width, [(format!("{why}{what}"), theme.bad())])
        }
        (None, Some(Status::Silent { seconds, why })) => {
            let colon = if why.is_empty() { "" } else { ": " };
            let seconds = show::counted(*seconds, "second");
            row(
                width,
                [(format!("silent for {seconds}{colon}{why}"), theme.bad())],
            )
        }
        _ => {
            let paused = if state.paused { "PAUSED  " } else { "" };
            let described = described(pen, layout);
            row(
                width,
                [(paused, theme.notice()), (&*described, theme.faint())],
            )
        }
    };
    line.render(area, buffer);
}

/// Returns the line in which conditions are written: its end, if it is too long.
fn edit(pen: Pen<'_>, text: &str, error: Option<&str>, width: u16) -> Line<'static> {
    let theme = pen.theme;
    let error = error.map(|error| format!("  {error}")).unwrap_or_default();
    let room = usize::from(width).saturating_sub(error.chars().count() + 2);
    let hidden = text.chars().count().saturating_sub(room.max(8));
    let text: String = text.chars().skip(hidden).collect();
    let texts = [
        ("/", theme.label()),
        (&*text, theme.strong()),
        (" ", theme.bar()),
    ];
    row(width, texts.into_iter().chain([(&*error, theme.bad())]))
}

/// Describes the rows: how many there are, how old they are, what is missing.
fn described(pen: Pen<'_>, layout: Layout) -> String {
    let (state, scene) = (pen.state, &pen.state.scene);
    let Some(view) = &scene.view else {
        return String::new();
    };
    let nanos = |time: Duration| time.as_nanos() as u64;
    let snapshot: &Snapshot = &view.snapshot;
    let (dump, totals) = (view.dump(), &view.snapshot.dump.totals);
    let mut parts = Vec::new();
    let what = state.page.title().trim_end_matches('s');
    let rows = show::counted(state.rows.len() as u64, what);
    parts.push(match (&state.over, state.rows.len()) {
        (Over::Nothing, 2..) => format!("{} of {rows}", state.cursor().row + 1),
        _ => rows,
    });
    if state.page == Page::Groups && !state.conditions.text.is_empty() {
        parts.push(show::counted(dump.totals.listed, "thread"));
    }
    // Groups count all threads, but conditions on threads are looked for among the listed ones.
    let all_count = state.page == Page::Groups && !state.conditions.filter.needs_all_threads();
    if totals.cut > 0 && !all_count {
        let (cut, all) = (show::count(totals.cut), show::count(totals.listed));
        parts.push(format!("{cut} of {all} threads not looked at"));
    }
    if totals.unlisted_new > 0 && state.page != Page::Carriers {
        parts.push(format!("{} not run yet", show::count(totals.unlisted_new)));
    }
    let age = scene.age().unwrap_or_default();
    let (age, took) = (show::duration(nanos(age)), short(snapshot.took));
    // What comes in a moment needs no announcement; a page of text has no next one.
    let next = match (layout.keys, scene.next_dump.as_secs()) {
        (0, _) | (_, ..3) => String::new(),
        (_, seconds) => format!(", next in {seconds} s"),
    };
    parts.push(format!("dump {age} old, took {took}{next}"));
    if let (Page::Groups, Some((_, window))) = (state.page, &view.growth) {
        parts.push(format!("change in {}", show::duration(nanos(*window))));
    }
    if let Some(trouble) = &scene.trouble {
        parts.push(format!("no newer dump: {trouble}"));
    }
    parts.join("; ")
}

/// Draws what can be pressed.
pub fn keys(pen: Pen<'_>, area: Rect, buffer: &mut Buffer) {
    let theme = pen.theme;
    let known: &[(&str, &str)] = match (&pen.state.editing, &pen.state.over) {
        (Some(_), _) => &[("Enter", "apply"), ("Esc", "leave"), ("Ctrl-U", "clear")],
        (None, Over::Nothing) => &[
            ("q", "quit"),
            ("h", "help"),
            ("/", "filter"),
            ("Enter", "stack"),
            ("s", "sort"),
            ("Tab", "page"),
            ("p", "pause"),
            ("+-", "interval"),
        ],
        (None, _) => &[("Esc", "back"), ("jk", "scroll"), ("q", "back")],
    };
    let texts = known.iter().flat_map(|(key, what)| {
        [
            (*key, theme.strong()),
            (" ", theme.plain()),
            (*what, theme.faint()),
            ("   ", theme.plain()),
        ]
    });
    whole(area.width, texts).render(area, buffer);
}
