//! A part of the terminal's cells, into which text is put without leaving it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Sparkline, Widget};
use unicode_width::UnicodeWidthStr;

use super::text::{fit, harmless};

/// A rectangle of cells. Places are relative to its corner; what is outside is not drawn.
#[derive(Debug)]
pub struct Canvas<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
}

/// On which side of its column a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

impl<'a> Canvas<'a> {
    /// Draws on all of a buffer.
    pub fn all(buffer: &'a mut Buffer) -> Canvas<'a> {
        let area = buffer.area;
        Canvas { buffer, area }
    }

    pub fn width(&self) -> u16 {
        self.area.width
    }

    pub fn height(&self) -> u16 {
        self.area.height
    }

    /// Returns the rows from `top` on, at most `height` of them.
    pub fn rows(&mut self, top: u16, height: u16) -> Canvas<'_> {
        let top = top.min(self.area.height);
        let area = Rect {
            y: self.area.y + top,
            height: height.min(self.area.height - top),
            ..self.area
        };
        Canvas {
            buffer: self.buffer,
            area,
        }
    }

    /// Puts text at a place, at most `width` columns of it, and returns how many it took.
    pub fn put(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        if x >= self.area.width || y >= self.area.height {
            return 0;
        }
        let width = width.min(self.area.width - x);
        let text = harmless(text);
        let text = fit(&text, usize::from(width));
        let (x, y) = (self.area.x + x, self.area.y + y);
        let end = self
            .buffer
            .set_stringn(x, y, &text, usize::from(width), style);
        end.0 - x
    }

    /// Puts text into a column.
    pub fn cell(&mut self, (x, width): (u16, u16), y: u16, text: &str, side: Side, style: Style) {
        let indent = match side {
            Side::Left => 0,
            Side::Right => {
                let taken = harmless(text).width().min(usize::from(width));
                width - taken as u16
            }
        };
        self.put(x + indent, y, width - indent, text, style);
    }

    /// Puts texts into a row, one after the other; those that do not fit as a whole are left out.
    /// Returns how many columns they took.
    pub fn line<'t>(
        &mut self,
        y: u16,
        width: u16,
        texts: impl IntoIterator<Item = (&'t str, Style)>,
    ) -> u16 {
        let mut x = 0;
        for (text, style) in texts {
            let needed = harmless(text).width();
            if usize::from(x) + needed > usize::from(width) {
                break;
            }
            x += self.put(x, y, width - x, text, style);
        }
        x
    }

    /// Gives a whole row a style.
    pub fn shade(&mut self, y: u16, style: Style) {
        let row = Rect {
            y: self.area.y + y,
            height: 1,
            ..self.area
        };
        if y < self.area.height {
            self.buffer.set_style(row, style);
        }
    }

    /// Draws how something has changed, the newest on the right.
    pub fn history(&mut self, (x, width): (u16, u16), y: u16, values: &[u64], style: Style) {
        if x + width > self.area.width || y >= self.area.height {
            return;
        }
        let newest = &values[values.len().saturating_sub(usize::from(width))..];
        let indent = width - newest.len() as u16;
        let area = Rect {
            x: self.area.x + x + indent,
            y: self.area.y + y,
            width: width - indent,
            height: 1,
        };
        let line = Sparkline::default().data(newest).style(style);
        line.render(area, self.buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(width: u16, height: u16, draw: impl Fn(&mut Canvas<'_>)) -> Vec<String> {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw(&mut Canvas::all(&mut buffer));
        super::super::batch::lines(&buffer)
    }

    #[test]
    fn nothing_is_drawn_outside() {
        let lines = drawn(6, 3, |canvas| {
            canvas.put(4, 0, 10, "abc", Style::new());
            canvas.put(6, 0, 10, "abc", Style::new());
            canvas.put(0, 3, 10, "abc", Style::new());
            canvas.shade(3, Style::new());
            canvas.history((4, 4), 1, &[1, 2], Style::new());
            let mut part = canvas.rows(1, 1);
            part.put(0, 0, 10, "in", Style::new());
            part.put(0, 1, 10, "out", Style::new());
            assert_eq!(canvas.rows(7, 2).height(), 0);
        });
        assert_eq!(lines, ["    a…", "in", ""]);
    }

    #[test]
    fn columns_have_sides() {
        let lines = drawn(8, 2, |canvas| {
            canvas.cell((0, 4), 0, "12", Side::Right, Style::new());
            canvas.cell((5, 3), 0, "ab", Side::Left, Style::new());
            canvas.cell((0, 4), 1, "123456", Side::Right, Style::new());
        });
        assert_eq!(lines, ["  12 ab", "123…"]);
    }

    #[test]
    fn texts_that_do_not_fit_are_left_out() {
        let lines = drawn(10, 1, |canvas| {
            let texts = ["one ", "two ", "three", "4"].map(|text| (text, Style::new()));
            assert_eq!(canvas.line(0, 10, texts), 8);
        });
        assert_eq!(lines, ["one two"]);
    }
}
