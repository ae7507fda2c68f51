//! What keys do.

use std::time::Duration;

use super::{Conditions, Editing, INTERVALS, Over, Page, Sort, StackPage, State};
use crate::top::layout::Layout;

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Tab,
    BackTab,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-U.
    Clear,
    /// Ctrl-C.
    Interrupt,
}

impl State {
    pub(super) fn press(&mut self, key: Key) {
        match (key, &self.editing) {
            (Key::Interrupt, _) => self.quits = true,
            (_, Some(_)) => self.edit(key),
            (Key::Char(c), None) => self.command(c),
            (_, None) => self.walk(key),
        }
    }

    /// A key of the line in which conditions are written.
    fn edit(&mut self, key: Key) {
        let Some(editing) = &mut self.editing else {
            return;
        };
        match key {
            Key::Char(c) if !c.is_control() => editing.text.push(c),
            Key::Backspace => drop(editing.text.pop()),
            Key::Clear => editing.text.clear(),
            Key::Escape => self.editing = None,
            Key::Enter => match editing.text.parse() {
                Ok(conditions) => {
                    self.editing = None;
                    self.filter_by(conditions);
                }
                Err(error) => editing.error = Some(error.to_string()),
            },
            _ => {}
        }
        // Another text may be right.
        if let (Some(editing), false) = (&mut self.editing, key == Key::Enter) {
            editing.error = None;
        }
    }

    fn filter_by(&mut self, conditions: Conditions) {
        self.conditions = conditions;
        self.over = Over::Nothing;
        self.cursors = Default::default();
        self.need_dump();
        self.scene.filter_by(&self.conditions);
        self.arrange();
    }

    fn command(&mut self, c: char) {
        match c {
            'q' if !matches!(self.over, Over::Nothing) => self.over = Over::Nothing,
            'q' => self.quits = true,
            '1' => self.turn_to(Page::Groups),
            '2' => self.turn_to(Page::Threads),
            '3' => self.turn_to(Page::Carriers),
            'j' => self.walk(Key::Down),
            'k' => self.walk(Key::Up),
            'g' => self.walk(Key::Home),
            'G' => self.walk(Key::End),
            'p' | ' ' => self.paused = !self.paused,
            's' => self.sort_by_next(),
            'h' | '?' => {
                self.scroll = 0;
                self.over = match self.over {
                    Over::Help => Over::Nothing,
                    _ => Over::Help,
                };
            }
            '/' => {
                self.editing = Some(Editing {
                    text: self.conditions.text.clone(),
                    error: None,
                });
            }
            '+' | '=' => self.interval = next_interval(self.interval, true),
            '-' => self.interval = next_interval(self.interval, false),
            _ => {}
        }
    }

    fn sort_by_next(&mut self) {
        let sorts = Sort::of(self.page);
        let place = sorts.iter().position(|sort| *sort == self.sort());
        let next = place.map_or(0, |place| (place + 1) % sorts.len());
        self.sorts[self.page as usize] = sorts[next];
        self.arrange();
    }

    /// A key that moves: from row to row, from page to page, in and out.
    fn walk(&mut self, key: Key) {
        let turn = |by: usize| Page::ALL[(self.page as usize + by) % Page::ALL.len()];
        match key {
            Key::Tab => return self.turn_to(turn(1)),
            Key::BackTab => return self.turn_to(turn(2)),
            Key::Escape => return self.back(),
            Key::Enter => return self.open(),
            _ => {}
        }
        let page = usize::from(Layout::of(self).rows).max(1);
        let is_over = !matches!(self.over, Over::Nothing);
        let at = if is_over {
            self.scroll
        } else {
            self.cursor().row
        };
        let to = match key {
            Key::Up => at.saturating_sub(1),
            Key::Down => at.saturating_add(1),
            Key::PageUp => at.saturating_sub(page),
            Key::PageDown => at.saturating_add(page),
            Key::Home => 0,
            Key::End => usize::MAX,
            _ => at,
        };
        match is_over {
            true => self.scroll = to,
            false => self.choose(to),
        }
    }

    /// From a stack or help to the rows; from there to all threads.
    fn back(&mut self) {
        match self.over {
            Over::Nothing if !self.conditions.text.is_empty() => {
                self.filter_by(Conditions::default());
            }
            _ => self.over = Over::Nothing,
        }
    }

    /// Shows the stack of what is chosen.
    fn open(&mut self) {
        if !matches!(self.over, Over::Nothing) {
            return;
        }
        let row = self.rows.get(self.cursor().row);
        let page = row.and_then(|row| StackPage::of(self.page, *row, &self.scene));
        if let Some(page) = page {
            (self.over, self.scroll) = (Over::Stack(Box::new(page)), 0);
        }
    }
}

fn next_interval(now: Duration, longer: bool) -> Duration {
    let now = now.as_millis() as u64;
    let next = match longer {
        true => INTERVALS.into_iter().find(|it| *it > now),
        false => INTERVALS.into_iter().rev().find(|it| *it < now),
    };
    Duration::from_millis(next.unwrap_or(now))
}
