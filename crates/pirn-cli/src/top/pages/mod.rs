//! Drawing what the state says.

mod carriers;
mod foot;
mod groups;
mod head;
mod stack;
mod threads;

use super::canvas::Canvas;
use super::layout::Layout;
use super::model::{Over, Page, State};
use super::table::{Cell, Column, Table};
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
pub fn draw(pen: Pen<'_>, layout: Layout, canvas: &mut Canvas<'_>) {
    let mut top = 0;
    let mut next = |height: u16| {
        let begin = top;
        top += height;
        (begin, height)
    };
    let (y, height) = next(layout.head);
    head::draw(pen, &mut canvas.rows(y, height));
    let (y, height) = next(layout.tabs);
    foot::tabs(pen, &mut canvas.rows(y, height));
    let (y, _) = next(layout.titles);
    let body = layout.titles + next(layout.rows).1;
    let mut part = canvas.rows(y, body);
    match &pen.state.over {
        Over::Nothing => rows(pen, layout, &mut part),
        Over::Help => stack::help(pen, layout.titles, &mut part),
        Over::Stack(page) => stack::draw(pen, page, layout.titles, &mut part),
    }
    let (y, height) = next(layout.foot);
    foot::status(pen, layout, &mut canvas.rows(y, height));
    let (y, height) = next(layout.keys);
    foot::keys(pen, &mut canvas.rows(y, height));
}

/// Returns the cells of a row.
type Cells = fn(Pen<'_>, usize) -> Vec<Cell>;

/// Draws the titles and the rows of the page.
fn rows(pen: Pen<'_>, layout: Layout, canvas: &mut Canvas<'_>) {
    let state = pen.state;
    let (columns, cells): (&[Column], Cells) = match state.page {
        Page::Groups => (groups::COLUMNS, groups::cells),
        Page::Threads => (threads::COLUMNS, threads::cells),
        Page::Carriers => (carriers::COLUMNS, carriers::cells),
    };
    let table = Table::new(columns, canvas.width());
    if layout.titles > 0 {
        table.head(canvas, 0, pen.theme.bar());
    }
    let cursor = state.cursor();
    let visible = state.rows.iter().enumerate().skip(cursor.top);
    for ((place, row), y) in visible.zip(layout.titles..canvas.height()) {
        table.row(canvas, y, &cells(pen, *row));
        // Without keys there is nothing to choose.
        if place == cursor.row && layout.keys + layout.tabs > 0 {
            canvas.shade(y, pen.theme.chosen());
        }
    }
    if state.rows.is_empty() {
        let note = foot::nothing(pen);
        canvas.put(0, layout.titles, canvas.width(), &note, pen.theme.faint());
    }
}

#[cfg(test)]
mod tests;
