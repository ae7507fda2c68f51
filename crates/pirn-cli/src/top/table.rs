//! Tables: columns that a page has room for.

use ratatui::style::Style;

use super::canvas::{Canvas, Side};

/// A column. Of a page that is too narrow, those with the highest rank are left out first.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    pub width: u16,
    pub side: Side,
    pub rank: u8,
}

/// Returns a column of numbers.
pub const fn number(title: &'static str, width: u16, rank: u8) -> Column {
    Column {
        title,
        width,
        side: Side::Right,
        rank,
    }
}

/// Returns a column of texts.
pub const fn text(title: &'static str, width: u16, rank: u8) -> Column {
    Column {
        title,
        width,
        side: Side::Left,
        rank,
    }
}

/// Between two columns.
const GAP: u16 = 2;

/// A column's number, and where it is.
type Place = (usize, u16, u16);

/// Returns which columns a page of this width has, and where. The last takes what is left.
fn places(columns: &[Column], width: u16) -> Vec<Place> {
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
    let mut x = 0;
    let place = |index: usize| {
        let column = columns[index];
        let extra = if Some(index) == last { spare } else { 0 };
        let place = (index, x, column.width + extra);
        x += column.width + GAP;
        place
    };
    shown.into_iter().map(place).collect()
}

/// What is in a cell.
pub type Cell = (String, Style);

/// A table on a canvas.
#[derive(Debug)]
pub struct Table<'a> {
    columns: &'a [Column],
    places: Vec<Place>,
}

impl<'a> Table<'a> {
    pub fn new(columns: &'a [Column], width: u16) -> Table<'a> {
        let places = places(columns, width);
        Table { columns, places }
    }

    /// Draws the titles.
    pub fn head(&self, canvas: &mut Canvas<'_>, y: u16, style: Style) {
        canvas.shade(y, style);
        for &(index, x, width) in &self.places {
            let Column { title, side, .. } = self.columns[index];
            canvas.cell((x, width), y, title, side, style);
        }
    }

    /// Draws a row, of which there is a cell for each column.
    pub fn row(&self, canvas: &mut Canvas<'_>, y: u16, cells: &[Cell]) {
        for &(index, x, width) in &self.places {
            if let Some((text, style)) = cells.get(index) {
                canvas.cell((x, width), y, text, self.columns[index].side, *style);
            }
        }
    }
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
        assert_eq!(
            places(&columns, 30),
            [(0, 0, 5), (1, 7, 5), (2, 14, 5), (3, 21, 9)]
        );
        assert_eq!(places(&columns, 20), [(0, 0, 5), (2, 7, 5), (3, 14, 6)]);
        assert_eq!(places(&columns, 12), [(0, 0, 5), (3, 7, 5)]);
        assert_eq!(places(&columns, 7), [(0, 0, 7)]);
        assert_eq!(places(&columns, 0), [(0, 0, 5)]);
    }
}
