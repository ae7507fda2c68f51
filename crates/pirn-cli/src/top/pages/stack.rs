//! The page about one group or thread, and the page of help.

use pirn_dump::show;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Paragraph, Widget};

use super::{HELP, Pen};
use crate::top::model::{Line, StackPage};
use crate::top::text::row;

/// The width of what values are the values of.
const LABEL: usize = 12;

/// Draws a stack. If there is room for titles, the first row has the title.
pub fn draw(pen: Pen<'_>, page: &StackPage, titles: u16, area: Rect, buffer: &mut Buffer) {
    let now = pen.state.scene.now;
    let age = now.map(|now| now.saturating_duration_since(page.taken));
    let age = show::duration(age.map_or(0, |age| age.as_nanos() as u64));
    let lines = page.lines.iter().map(|line| styled(pen, line));
    below(
        pen,
        &format!("{}, {age} ago", page.title),
        lines,
        titles,
        area,
        buffer,
    );
}

fn styled(pen: Pen<'_>, line: &Line) -> Vec<(String, Style)> {
    let theme = pen.theme;
    match line {
        Line::Empty => vec![],
        Line::Fact(label, value) => {
            vec![
                (format!("{label:<LABEL$}"), theme.label()),
                (value.clone(), theme.plain()),
            ]
        }
        Line::Thread(text) => vec![(format!("  {text}"), theme.plain())],
        Line::Own(text) => vec![(format!("    {text}"), theme.strong())],
        Line::Library(text) => vec![(format!("    {text}"), theme.plain())],
        Line::Note(text) => vec![(format!("  {text}"), theme.faint())],
    }
}

/// Draws what keys do.
pub fn help(pen: Pen<'_>, titles: u16, area: Rect, buffer: &mut Buffer) {
    let lines = HELP.lines().map(|line| match line.starts_with(' ') {
        true => vec![(line.to_string(), pen.theme.plain())],
        false => vec![(line.to_string(), pen.theme.strong())],
    });
    below(pen, "help", lines, titles, area, buffer);
}

/// Draws lines below a title.
fn below(
    pen: Pen<'_>,
    title: &str,
    lines: impl Iterator<Item = Vec<(String, Style)>>,
    titles: u16,
    area: Rect,
    buffer: &mut Buffer,
) {
    let (bar, width) = (pen.theme.bar(), area.width);
    let split = Layout::vertical([Constraint::Length(titles), Constraint::Fill(1)]);
    let [head, rest] = split.areas(area);
    row(width, [(title, bar)]).style(bar).render(head, buffer);
    let lines = lines.skip(pen.state.scroll).take(usize::from(rest.height));
    let lines: Vec<_> = lines.map(|texts| row(width, texts)).collect();
    Paragraph::new(lines).render(rest, buffer);
}
