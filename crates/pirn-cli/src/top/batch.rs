//! Pages as plain text, one after the other: for scripts.

use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::layout::Layout;
use super::model::{Event, News, Page, State};
use super::pages::{self, Pen};
use super::theme::Theme;
use pirn_live::{Live, Status};

/// A page comes at the latest when there has been no news for this long.
const LATE: Duration = Duration::from_secs(4);
/// The first page waits for the first dump for so long.
const FIRST_DUMP: Duration = Duration::from_secs(60);

/// How pages are written.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// So many pages; `None`: until the process ends.
    pub pages: Option<u64>,
    /// So many rows each.
    pub rows: u16,
    /// In columns.
    pub width: u16,
}

/// Writes pages, each of one interval.
pub fn run(
    live: &Live,
    mut state: State,
    batch: Batch,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    live.keep(Some(state.want()));
    let mut written = 0;
    while batch.pages.is_none_or(|pages| written < pages) {
        await_news(live, &mut state);
        if let Some(Status::Ended(why)) = &state.scene.status {
            return Err(why.clone().into());
        }
        let text = page(&mut state, batch);
        let separator = if written > 0 { "\n" } else { "" };
        write!(out, "{separator}{text}")?;
        out.flush()?;
        written += 1;
    }
    Ok(())
}

/// Waits for the next sample, and for the first dump. Gives up when they are late: then the page
/// says what is missing.
fn await_news(live: &Live, state: &mut State) {
    let (begin, mut seen) = (Instant::now(), live.revision());
    let known = state.scene.sample().map(|sample| sample.elapsed);
    let is_late = |late: Duration| begin.elapsed() >= state.interval + late;
    loop {
        let news = News::of(live, state.want());
        let is_over = matches!(news.status, Status::Ended(_));
        // A page has rates: it takes two samples.
        let newest = news.samples.last().map(|sample| sample.elapsed);
        let has_sample = news.samples.len() > 1 && newest > known || is_late(LATE);
        let needs_dump = state.page != Page::Carriers;
        let has_dump = !needs_dump || news.snapshot.is_some() || news.trouble.is_some();
        if is_over || has_sample && (has_dump || is_late(FIRST_DUMP)) {
            return state.update(Event::News(Box::new(news)));
        }
        seen = live.wait(seen, Duration::from_millis(500));
    }
}

/// Returns a page as text.
fn page(state: &mut State, batch: Batch) -> String {
    let rows = u16::try_from(state.rows.len()).unwrap_or(u16::MAX);
    let rows = rows.min(batch.rows).max(1);
    let layout = Layout::of_text(state, rows);
    let height = layout.head + layout.titles + layout.rows + layout.foot;
    let mut buffer = Buffer::empty(Rect::new(0, 0, batch.width, height));
    let pen = Pen {
        state,
        theme: Theme::default(),
    };
    pages::draw(pen, layout, &mut buffer);
    lines(&buffer).join("\n") + "\n"
}

/// Returns the text of a buffer, without what is empty at the ends of lines.
pub fn lines(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let mut lines = Vec::new();
    for y in area.top()..area.bottom() {
        let mut line = String::new();
        let mut x = area.left();
        while x < area.right() {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            // A wide character takes the next cell, too.
            x += unicode_width::UnicodeWidthStr::width(symbol).max(1) as u16;
        }
        lines.push(line.trim_end().to_string());
    }
    lines
}
