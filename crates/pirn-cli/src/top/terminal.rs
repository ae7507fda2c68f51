//! The terminal while it shows pages: it gets back what it was, however this ends.

use std::io::{self, Stdout, Write};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

/// The terminal, until this is dropped.
#[derive(Debug)]
pub struct Screen {
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal. A panic of any thread gives it back before it says what has happened.
    pub fn take() -> io::Result<Screen> {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            give_back();
            report(info);
        }));
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let begun = execute!(
            io::stdout(),
            EnterAlternateScreen,
            cursor::Hide,
            EnableBracketedPaste
        );
        let terminal = begun.and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match terminal {
            Ok(terminal) => Ok(Screen { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }
}

impl Screen {
    /// Whether the terminal is still this one's: a thread that has panicked has given it back.
    pub fn is_held(&self) -> bool {
        TAKEN.load(Ordering::SeqCst)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Whether the terminal has been taken, and not been given back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Gives the terminal back, once: a second time would put the cursor back, too, onto what a panic
/// has written. If the terminal is gone, nothing can be done.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = execute!(
        out,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = out.flush();
    let _ = disable_raw_mode();
}
