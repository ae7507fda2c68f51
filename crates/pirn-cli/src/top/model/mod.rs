//! What is shown, as a state that events change. Nothing here draws, waits, or asks anybody.
//!
//! ```text
//!   keys, sizes, news of the process ---> State::update ---> State ---> pages draw it
//!                                                             |
//!                                                             v
//!                                     wants: which dumps, which interval, to quit
//! ```

mod growth;
mod keys;
mod order;
mod scene;
mod stack;

pub use keys::Key;
pub use order::Sort;
pub use scene::{News, Scene, View};
pub use stack::{Line, StackPage, known_by, place_in_short};

use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use pirn_dump::{Filter, FilterError};

use super::layout::Layout;
use pirn_live::Want;

/// The most threads that the threads page lists.
const MOST_THREADS: u64 = 20_000;
/// The most threads among which some are chosen by conditions.
const MOST_FILTERED: u64 = 2_000_000;

/// Intervals in milliseconds, from which + and - choose.
const INTERVALS: [u64; 9] = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000];

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// Threads that are alike, largest group first.
    Groups,
    /// One row per thread.
    Threads,
    /// One row per carrier.
    Carriers,
}

impl Page {
    pub const ALL: [Page; 3] = [Page::Groups, Page::Threads, Page::Carriers];

    pub fn title(self) -> &'static str {
        ["groups", "threads", "carriers"][self as usize]
    }
}

/// Something that happens.
#[derive(Debug)]
pub enum Event {
    Key(Key),
    /// The terminal has this many columns and rows.
    Size(u16, u16),
    News(Box<News>),
    /// A signal asks this process to end.
    Quit,
}

/// The row that is chosen on a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// What it is: a group's key, or the number of a thread or a carrier. It stays chosen wherever
    /// its row goes. `None`: the first row, whatever it is.
    subject: Option<u64>,
    pub row: usize,
    /// The first row that is visible.
    pub top: usize,
}

/// The conditions that threads must meet, as text and as what that means.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    pub text: String,
    pub filter: Filter,
}

impl FromStr for Conditions {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Conditions, FilterError> {
        let text = text.trim().to_string();
        text.parse().map(|filter| Conditions { text, filter })
    }
}

/// The line in which conditions are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Editing {
    pub text: String,
    /// Why the text does not say conditions.
    pub error: Option<String>,
}

/// What is shown in place of the rows.
#[derive(Clone, Debug, Default)]
pub enum Over {
    #[default]
    Nothing,
    Help,
    Stack(Box<StackPage>),
}

/// All that is shown.
#[derive(Debug)]
pub struct State {
    pub page: Page,
    /// By page.
    sorts: [Sort; 3],
    cursors: [Cursor; 3],
    /// The rows of the page: numbers of groups, threads or carriers.
    pub rows: Vec<usize>,
    pub conditions: Conditions,
    pub editing: Option<Editing>,
    pub over: Over,
    /// How far help or a stack is scrolled.
    pub scroll: usize,
    pub paused: bool,
    pub interval: Duration,
    pub scene: Scene,
    /// Columns and rows.
    pub size: (u16, u16),
    pub quits: bool,
}

impl State {
    pub fn new(
        page: Page,
        sort: Option<Sort>,
        conditions: Conditions,
        interval: Duration,
    ) -> State {
        let mut state = State {
            page,
            sorts: Page::ALL.map(|page| Sort::of(page)[0]),
            cursors: Default::default(),
            rows: Vec::new(),
            conditions,
            editing: None,
            over: Over::Nothing,
            scroll: 0,
            paused: false,
            interval,
            scene: Scene::default(),
            size: (80, 24),
            quits: false,
        };
        if let Some(sort) = sort {
            state.sorts[page as usize] = sort;
        }
        state
    }

    /// Changes what is shown.
    pub fn update(&mut self, event: Event) {
        match event {
            Event::Key(key) => self.press(key),
            Event::Size(width, height) => self.size = (width, height),
            Event::News(news) if self.paused => self.scene.tell(&news),
            Event::News(news) => {
                self.scene.update(*news, &self.conditions);
                self.arrange();
            }
            Event::Quit => self.quits = true,
        }
        self.follow();
    }

    /// Returns which dumps the page needs.
    pub fn want(&self) -> Want {
        let filter = &self.conditions.filter;
        match self.page {
            Page::Carriers => Want::Examples,
            Page::Groups if !filter.needs_all_threads() => Want::Examples,
            Page::Threads if filter.is_empty() => Want::All { max: MOST_THREADS },
            _ => Want::All { max: MOST_FILTERED },
        }
    }

    pub fn sort(&self) -> Sort {
        self.sorts[self.page as usize]
    }

    pub fn cursor(&self) -> Cursor {
        self.cursors[self.page as usize]
    }

    fn cursor_mut(&mut self) -> &mut Cursor {
        &mut self.cursors[self.page as usize]
    }

    /// Sorts the rows of the page anew. The row that was chosen stays chosen.
    fn arrange(&mut self) {
        self.rows = order::rows(self.page, self.sort(), &self.scene);
        if let Some(subject) = self.cursor().subject {
            let mut rows = self.rows.iter();
            if let Some(row) = rows.position(|row| self.subject(*row) == Some(subject)) {
                self.cursor_mut().row = row;
            }
        } else {
            self.cursor_mut().row = 0;
        }
    }

    /// Returns what is in a row.
    fn subject(&self, row: usize) -> Option<u64> {
        let view = self.scene.view.as_ref();
        match self.page {
            Page::Groups => view?.keys.get(row).copied(),
            Page::Threads => view?.dump().threads.get(row).map(|thread| thread.id),
            Page::Carriers => self
                .scene
                .carriers()
                .get(row)
                .map(|it| u64::from(it.number)),
        }
    }

    /// Chooses another row.
    fn choose(&mut self, row: usize) {
        let row = row.min(self.rows.len().saturating_sub(1));
        let subject = match row {
            0 => None,
            _ => self.rows.get(row).and_then(|row| self.subject(*row)),
        };
        let cursor = self.cursor_mut();
        (cursor.row, cursor.subject) = (row, subject);
    }

    /// Makes the chosen row one that there is, and visible.
    fn follow(&mut self) {
        let room = usize::from(Layout::of(self).rows).max(1);
        let last = self.rows.len().saturating_sub(1);
        let cursor = self.cursor_mut();
        cursor.row = cursor.row.min(last);
        // No empty rows below the last one.
        let highest = (last + 1).saturating_sub(room);
        let least = (cursor.row + 1).saturating_sub(room);
        cursor.top = cursor.top.clamp(least, cursor.row).min(highest.max(least));
        self.scroll = self.scroll.min(self.longest_scroll(room));
    }

    fn longest_scroll(&self, room: usize) -> usize {
        let lines = match &self.over {
            Over::Nothing => 0,
            Over::Help => super::pages::HELP.lines().count(),
            Over::Stack(stack) => stack.lines.len(),
        };
        lines.saturating_sub(room)
    }

    /// Shows another page.
    fn turn_to(&mut self, page: Page) {
        self.over = Over::Nothing;
        if self.page != page {
            self.page = page;
            self.need_dump();
            self.arrange();
        }
    }

    /// Forgets a dump that does not have what the page needs. The driver brings another.
    fn need_dump(&mut self) {
        let want = self.want();
        self.scene.need(want);
    }
}

#[cfg(test)]
pub mod tests;
