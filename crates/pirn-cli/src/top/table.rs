//! Tables: columns that a page has room for.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, HorizontalAlignment, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Row, StatefulWidget, Table, TableState};

use super::text::span;

/// A column. Of a page that is too narrow, those with the highest rank are left out first.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    pub width: u16,
    pub side: HorizontalAlignment,
    pub rank: u8,
}

/// Returns a column of numbers.
pub const fn number(title: &'static str, width: u16, rank: u8) -> Column {
    Column {
        title,
        width,
        side: HorizontalAlignment::Right,
        rank,
    }
}

/// Returns a column of texts.
pub const fn text(title: &'static str, width: u16, rank: u8) -> Column {
    Column {
        title,
        width,
        side: HorizontalAlignment::Left,
        rank,
    }
}

/// Between two columns.
const GAP: u16 = 2;

/// Returns which columns a page of this width has, and their widths. The last takes what is left.
fn places(columns: &[Column], width: u16) -> Vec<(usize, u16)> {
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let needed = |shown: &[usize]| {
        let widths = shown.iter().map(|index| columns[*index].width + GAP);
        widths.sum::<u16>().saturating_sub(GAP)
    };
    while shown.len() > 1 && needed(&shown) > width {
        // Of equal ranks the one more to the right goes.
        let least = shown
            .iter()
            .enumerate()
            .max_by_key(|(_, it)| columns[**it].rank);
        let Some((place, _)) = least else { break };
        shown.remove(place);
    }
    let spare = width.saturating_sub(needed(&shown));
    let last = shown.last().copied();
    let place = |index: usize| {
        let extra = if Some(index) == last { spare } else { 0 };
        (index, (columns[index].width + extra).min(width))
    };
    shown.into_iter().map(place).collect()
}

/// What is in a cell.
pub type Cell = (String, Style);

/// Draws a table: titles, if they have a style, and rows, one of which may be chosen.
pub fn draw(
    columns: &[Column],
    titles: Option<Style>,
    rows: impl Iterator<Item = Vec<Cell>>,
    chosen: Option<(usize, Style)>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let places = places(columns, area.width);
    let row = |cells: Vec<Cell>| {
        let cell = |&(index, width): &(usize, u16)| {
            let (text, style) = cells.get(index).cloned().unwrap_or_default();
            Line::from(span(&text, width, style)).alignment(columns[index].side)
        };
        Row::new(places.iter().map(cell).collect::<Vec<_>>())
    };
    let widths = places.iter().map(|(_, width)| Constraint::Length(*width));
    let mut table = Table::new(rows.map(row), widths).column_spacing(GAP);
    if let Some(style) = titles {
        let titles = columns.iter().map(|it| (it.title.to_string(), style));
        table = table.header(row(titles.collect()).style(style));
    }
    let mut state = TableState::new().with_selected(chosen.map(|(row, _)| row));
    let table = table.row_highlight_style(chosen.unwrap_or_default().1);
    table.render(area, buffer, &mut state);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_go_by_rank_and_the_last_grows() {
        let columns = [
            number("A", 5, 0),
            text("B", 5, 2),
            text("C", 5, 1),
            text("D", 5, 0),
        ];
        assert_eq!(places(&columns, 30), [(0, 5), (1, 5), (2, 5), (3, 9)]);
        assert_eq!(places(&columns, 20), [(0, 5), (2, 5), (3, 6)]);
        assert_eq!(places(&columns, 12), [(0, 5), (3, 5)]);
        assert_eq!(places(&columns, 7), [(0, 7)]);
        assert_eq!(places(&columns, 0), [(0, 0)]);
    }

    #[test]
    fn columns_have_sides() {
        let columns = [number("A", 4, 0), text("B", 3, 0)];
        let rows = [["12", "ab"], ["123456", ""]];
        let rows = rows.map(|row| row.map(|text| (text.to_string(), Style::new())).to_vec());
        let mut buffer = Buffer::empty(Rect::new(0, 0, 9, 3));
        let area = buffer.area;
        draw(
            &columns,
            Some(Style::new()),
            rows.into_iter(),
            None,
            area,
            &mut buffer,
        );
        assert_eq!(
            super::super::batch::lines(&buffer),
            ["   A  B", "  12  ab", "123…"]
        );
    }
}
