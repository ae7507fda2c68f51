//! The page about one group or thread, and the page of help.

use pirn_dump::show;
use ratatui::style::Style;

use super::{HELP, Pen};
use crate::top::canvas::Canvas;
use crate::top::model::{Line, StackPage};

/// The width of what values are the values of.
const LABEL: u16 = 12;

/// Draws a stack. If there is room for titles, the first row has the title.
pub fn draw(pen: Pen<'_>, page: &StackPage, titles: u16, canvas: &mut Canvas<'_>) {
    let age = pen
        .state
        .scene
        .now
        .map(|now| now.saturating_duration_since(page.taken));
    let age = age.map_or(0, |age| age.as_nanos() as u64);
    let title = format!("{}, {} ago", page.title, show::duration(age));
    head(pen, &title, titles, canvas);
    let lines = page.lines.iter().skip(pen.state.scroll);
    for (line, y) in lines.zip(titles..canvas.height()) {
        draw_line(pen, line, y, canvas);
    }
}

fn draw_line(pen: Pen<'_>, line: &Line, y: u16, canvas: &mut Canvas<'_>) {
    let (theme, width) = (pen.theme, canvas.width());
    let mut put = |indent: u16, text: &str, style: Style| {
        canvas.put(indent, y, width.saturating_sub(indent), text, style);
    };
    match line {
        Line::Empty => {}
        Line::Fact(label, value) => {
            put(0, label, theme.label());
            put(LABEL, value, theme.plain());
        }
        Line::Thread(text) => put(2, text, theme.plain()),
        Line::Own(text) => put(4, text, theme.strong()),
        Line::Library(text) => put(4, text, theme.plain()),
        Line::Note(text) => put(2, text, theme.faint()),
    }
}

/// Draws what keys do.
pub fn help(pen: Pen<'_>, titles: u16, canvas: &mut Canvas<'_>) {
    head(pen, "help", titles, canvas);
    let lines = HELP.lines().skip(pen.state.scroll);
    for (line, y) in lines.zip(titles..canvas.height()) {
        let style = match line.starts_with(' ') {
            true => pen.theme.plain(),
            false => pen.theme.strong(),
        };
        canvas.put(0, y, canvas.width(), line, style);
    }
}

fn head(pen: Pen<'_>, title: &str, titles: u16, canvas: &mut Canvas<'_>) {
    if titles > 0 {
        canvas.shade(0, pen.theme.bar());
        canvas.put(0, 0, canvas.width(), title, pen.theme.bar());
    }
}
