//! Drawing what the state says.

mod carriers;
mod foot;
mod groups;
mod head;
mod stack;
mod threads;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout as Split, Rect};
use ratatui::widgets::Widget;

use super::layout::Layout;
use super::model::{Over, Page, State};
use super::table::{self, Cell, Column};
use super::text::span;
use super::theme::Theme;

/// What keys do, for people.
pub const HELP: &str = include_str!("help.txt");

/// What pages are drawn with.
#[derive(Clone, Copy, Debug)]
pub struct Pen<'a> {
    pub state: &'a State,
    pub theme: Theme,
}

/// Draws all of it.
pub fn draw(pen: Pen<'_>, layout: Layout, buffer: &mut Buffer) {
    let Layout { titles, .. } = layout;
    let heights = [
        layout.head,
        layout.tabs,
        titles + layout.rows,
        layout.foot,
        layout.keys,
    ];
    let split = Split::vertical(heights.map(Constraint::Length));
    let [head, tabs, body, status, keys] = split.areas(buffer.area);
    head::draw(pen, head, buffer);
    foot::tabs(pen, tabs, buffer);
    match &pen.state.over {
        Over::Nothing => rows(pen, layout, body, buffer),
        Over::Help => stack::help(pen, titles, body, buffer),
        Over::Stack(page) => stack::draw(pen, page, titles, body, buffer),
    }
    foot::status(pen, layout, status, buffer);
    foot::keys(pen, keys, buffer);
}

/// Returns the cells of a row.
type Cells = fn(Pen<'_>, usize) -> Vec<Cell>;

/// Draws the titles and the rows of the page.
fn rows(pen: Pen<'_>, layout: Layout, area: Rect, buffer: &mut Buffer) {
    let state = pen.state;
    let (columns, cells): (&[Column], Cells) = match state.page {
        Page::Groups => (groups::COLUMNS, groups::cells),
        Page::Threads => (threads::COLUMNS, threads::cells),
        Page::Carriers => (carriers::COLUMNS, carriers::cells),
    };
    let cursor = state.cursor();
    let room = usize::from(layout.rows);
    let visible = state.rows.iter().skip(cursor.top).take(room);
    // Without keys there is nothing to choose.
    let chosen = (layout.keys + layout.tabs > 0).then(|| cursor.row.checked_sub(cursor.top));
    table::draw(
        columns,
        (layout.titles > 0).then(|| pen.theme.bar()),
        visible.map(|row| cells(pen, *row)),
        chosen.flatten().map(|row| (row, pen.theme.chosen())),
        area,
        buffer,
    );
    if state.rows.is_empty() {
        let below = Rect {
            y: area.y + layout.titles,
            ..area
        };
        let note = span(&foot::nothing(pen), area.width, pen.theme.faint());
        note.render(below.intersection(area), buffer);
    }
}

#[cfg(test)]
mod tests;
