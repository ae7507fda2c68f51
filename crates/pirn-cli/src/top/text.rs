//! Text for the cells of a page: names are data, and stay in their cell.

use std::borrow::Cow;
use std::time::Duration;

use pirn_dump::show;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns text as it may be put into a cell. Control characters, and those that change the
/// direction of writing, are escaped, as in a dump; so are those without a width, which terminals
/// put onto the character before, however many there are.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::new();
    for c in show::plain(text.as_bytes()).chars() {
        match c.width() {
            Some(1..) => escaped.push(c),
            _ => escaped.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(escaped)
}

/// Returns text that is at most this many columns wide. What is cut off leaves a mark.
pub fn fit(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let (mut used, mut end) = (0, 0);
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        // The mark takes a column.
        if used >= width {
            break;
        }
        end = at + c.len_utf8();
    }
    let mark = if width > 0 { "…" } else { "" };
    Cow::Owned(format!("{}{mark}", &text[..end]))
}

/// Returns text that is harmless, and at most `width` columns wide.
pub fn span(text: &str, width: u16, style: Style) -> Span<'static> {
    let text = harmless(text);
    Span::styled(fit(&text, usize::from(width)).into_owned(), style)
}

/// Returns texts that follow each other, cut off at the end of the row.
pub fn row<T: AsRef<str>>(
    width: u16,
    texts: impl IntoIterator<Item = (T, Style)>,
) -> Line<'static> {
    texts
        .into_iter()
        .fold(Line::default(), |mut line, (text, style)| {
            let left = width.saturating_sub(line.width() as u16);
            line.push_span(span(text.as_ref(), left, style));
            line
        })
}

/// Returns texts that follow each other. Those that do not fit as a whole are left out.
pub fn whole<T: AsRef<str>>(
    width: u16,
    texts: impl IntoIterator<Item = (T, Style)>,
) -> Line<'static> {
    let mut line = Line::default();
    for (text, style) in texts {
        line.push_span(Span::styled(harmless(text.as_ref()).into_owned(), style));
        if line.width() > usize::from(width) {
            line.spans.pop();
            break;
        }
    }
    line
}

/// Returns a thread's name in quotation marks, or nothing.
pub fn name(name: Option<&[u8]>) -> String {
    name.map(show::quoted).unwrap_or_default()
}

/// Returns a number per second, in at most 6 columns: `0`, `0.5`, `123`, `1,203`, `45.2k`, `3.1M`.
pub fn rate(number: f64) -> String {
    match number {
        0.0 => "0".into(),
        ..9.95 => format!("{number:.1}"),
        ..9999.5 => show::count(number.round() as u64),
        ..999_950.0 => format!("{:.1}k", number / 1e3),
        ..999_950_000.0 => format!("{:.1}M", number / 1e6),
        _ => format!("{:.1}G", number / 1e9),
    }
}

/// Returns a short time: `800 ns`, `2.0 µs`, `131 µs`, `4.2 ms`, `1.1 s`.
pub fn short(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    let (number, unit) = match nanos {
        ..1e3 => return format!("{nanos:.0} ns"),
        ..1e6 => (nanos / 1e3, "µs"),
        ..1e9 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    match number {
        ..9.95 => format!("{number:.1} {unit}"),
        _ => format!("{number:.0} {unit}"),
    }
}

/// Returns how long something has lasted, in a column: `0.4 s`, `12 s`, `3 min`, `2 h`.
pub fn age(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000;
    match seconds {
        0..10 => format!("{}.{} s", seconds, nanos / 100_000_000 % 10),
        10..120 => format!("{seconds} s"),
        120..6_000 => format!("{} min", seconds / 60),
        6_000..360_000 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Returns a number with its sign, if it is not 0.
pub fn signed(number: i64) -> String {
    let digits = show::count(number.unsigned_abs());
    match number {
        0 => "0".into(),
        1.. => format!("+{digits}"),
        _ => format!("-{digits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_gets_out_of_its_cell() {
        for (name, shown) in [
            ("plain", "plain"),
            ("\x1b[2J\r\n", "\\x1b[2J\\r\\n"),
            ("\u{202e}evil", "\\u{202e}evil"),
            ("e\u{301}\u{301}", "e\\u{301}\\u{301}"),
            ("名前", "名前"),
            ("\u{feff}\u{200d}", "\\u{feff}\\u{200d}"),
            ("é", "é"),
        ] {
            assert_eq!(harmless(name), shown);
        }
    }

    #[test]
    fn what_is_too_wide_is_cut() {
        assert_eq!(fit("handle", 6), "handle");
        assert_eq!(fit("handle", 5), "hand…");
        assert_eq!(fit("名前名", 4), "名…", "half a character is left out");
        assert_eq!(fit("名前名", 5), "名前…");
        assert_eq!((fit("ab", 1), fit("ab", 0)), ("…".into(), "".into()));
    }

    #[test]
    fn texts_that_do_not_fit_are_left_out() {
        let texts = ["one ", "two ", "three", "4"].map(|text| (text, Style::new()));
        assert_eq!(whole(10, texts).to_string(), "one two ");
    }

    #[test]
    fn numbers_are_short() {
        let rates = [
            0.0, 0.04, 9.94, 9.96, 1203.4, 45_200.0, 999_949.0, 3.1e6, 2e9,
        ];
        let shown = rates.map(rate);
        let expected = [
            "0", "0.0", "9.9", "10", "1,203", "45.2k", "999.9k", "3.1M", "2.0G",
        ];
        assert_eq!(shown, expected);
        let nanos = [0, 800, 2048, 131_072, 4_200_000, 1_100_000_000];
        let shown = nanos.map(|nanos| short(Duration::from_nanos(nanos)));
        assert_eq!(
            shown,
            ["0 ns", "800 ns", "2.0 µs", "131 µs", "4.2 ms", "1.1 s"]
        );
        let seconds = [0, 12, 185, 7_620, 500_000].map(|it| age(it * 1_000_000_000));
        assert_eq!(seconds, ["0.0 s", "12 s", "3 min", "2 h", "5 d"]);
        assert_eq!([-1200, 0, 7].map(signed), ["-1,200", "0", "+7"]);
    }
}
