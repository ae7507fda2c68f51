//! Colors, or none.

use pirn_dump::{CarrierState, State};
use ratatui::style::{Color, Modifier, Style};

/// How things look. Colors only help: what they say is also in the text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Theme {
    /// Whether there are colors: the terminal's own sixteen, so that dark and light ones both do.
    pub colors: bool,
}

impl Theme {
    /// Returns the theme that the user asks for: <https://no-color.org>.
    pub fn of_environment() -> Theme {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Theme { colors: !unwanted }
    }

    fn color(self, color: Color) -> Style {
        match self.colors {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }

    pub fn plain(self) -> Style {
        Style::new()
    }

    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What a number is the number of.
    pub fn label(self) -> Style {
        self.color(Color::Cyan)
    }

    /// What matters less.
    pub fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub fn good(self) -> Style {
        self.color(Color::Green)
    }

    pub fn notice(self) -> Style {
        self.color(Color::Yellow)
    }

    pub fn bad(self) -> Style {
        self.color(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// The titles of columns, and the bars.
    pub fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The row that is chosen, whatever its cells look like otherwise.
    pub fn chosen(self) -> Style {
        let style = Style::new().fg(Color::Reset).remove_modifier(Modifier::DIM);
        style.add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    pub fn history(self) -> Style {
        self.color(Color::Green)
    }

    pub fn state(self, state: State) -> Style {
        match state {
            State::Running => self.good(),
            State::Runnable | State::New => self.notice(),
            State::Waiting => self.plain(),
            State::Ended => self.faint(),
        }
    }

    /// The state of a carrier, by its word.
    pub fn carrier(self, state: &str) -> Style {
        let is = |known: CarrierState| state == known.word();
        match () {
            () if is(CarrierState::Running) => self.good(),
            () if is(CarrierState::Searching) => self.notice(),
            () if is(CarrierState::Stuck) => self.bad(),
            () => self.faint(),
        }
    }
}
