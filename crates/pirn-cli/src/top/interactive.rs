//! Pages in a terminal.
//!
//! ```text
//!   thread `keys`      keys and sizes ------\
//!   thread `news`      of the process -------> events ---> State::update ---> draw
//!   thread `signals`   asked to end --------/                    |
//!                                                                v
//!                                                    which dumps the process is asked for
//! ```
//!
//! Nothing that takes long happens on the thread that draws, so keys are obeyed at once.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::layout::Layout;
use super::model::{Event, Key, News, State};
use super::pages::{self, Pen};
use super::terminal::Screen;
use super::theme::Theme;
use pirn_live::Live;

/// Ages are shown anew this often.
const TICK: Duration = Duration::from_millis(500);

/// What reaches the thread that draws.
enum Input {
    Event(Event),
    /// There is something new of the process, or time has passed.
    News,
    /// The terminal is gone.
    Gone(io::Error),
}

/// Shows pages until the user ends it.
pub fn run(live: Live, mut state: State) -> Result<(), Box<dyn Error>> {
    let live = Arc::new(live);
    // Before the terminal is taken: a signal that comes between ends this process as ever.
    let signals = Signals::new([SIGTERM, SIGHUP, SIGINT])?;
    let mut screen = Screen::take()?;
    let (events, inputs) = mpsc::channel();
    begin(events.clone(), "keys", read_keys)?;
    begin(events.clone(), "signals", |events| {
        read_signals(signals, &events)
    })?;
    let watched = Arc::clone(&live);
    begin(events, "news", move |events| read_news(&watched, &events))?;
    let theme = Theme::of_environment();
    let mut wanted = None;
    while !state.quits {
        let want = state.want();
        if wanted != Some(want) {
            wanted = Some(want);
            live.keep(wanted);
            state.update(Event::News(Box::new(News::of(&live, want))));
        }
        live.set_interval(state.interval);
        if !screen.is_held() {
            return Err("a thread of this command has panicked".into());
        }
        // The event that says so may have been about the size before.
        let size = screen.terminal.size()?;
        state.update(Event::Size(size.width, size.height));
        draw(&mut screen, &state, theme)?;
        let mut input = inputs.recv()?;
        // All that has come meanwhile is one change of the page.
        loop {
            match input {
                Input::Event(event) => {
                    // A terminal that was small for a moment has lost what was on it.
                    // (`Terminal::clear` would ask it where the cursor is, and wait for an answer.)
                    if let Event::Size(width, height) = event {
                        screen.terminal.resize(Rect::new(0, 0, width, height))?;
                    }
                    state.update(event);
                }
                Input::News => state.update(Event::News(Box::new(News::of(&live, want)))),
                Input::Gone(error) => return Err(error.into()),
            }
            // Other dumps are asked for at once.
            if state.quits || state.want() != want {
                break;
            }
            match inputs.try_recv() {
                Ok(next) => input = next,
                Err(_) => break,
            }
        }
    }
    Ok(())
}

fn draw(screen: &mut Screen, state: &State, theme: Theme) -> io::Result<()> {
    screen.terminal.draw(|frame| {
        let pen = Pen { state, theme };
        pages::draw(pen, Layout::of(state), frame.buffer_mut());
    })?;
    Ok(())
}

/// Starts a thread that sends inputs until their receiver is gone. It ends with the process.
fn begin(
    events: Sender<Input>,
    name: &str,
    body: impl FnOnce(Sender<Input>) + Send + 'static,
) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.into());
    thread.spawn(move || body(events)).map(drop)
}

fn read_news(live: &Live, events: &Sender<Input>) {
    let mut seen = 0;
    while events.send(Input::News).is_ok() {
        seen = live.wait(seen, TICK);
    }
}

fn read_signals(mut signals: Signals, events: &Sender<Input>) {
    for _ in signals.forever() {
        let _ = events.send(Input::Event(Event::Quit));
    }
}

fn read_keys(events: Sender<Input>) {
    loop {
        let input = match event::read() {
            Ok(event) => match meant(event) {
                Some(event) => Input::Event(event),
                None => continue,
            },
            Err(error) => Input::Gone(error),
        };
        let is_gone = matches!(input, Input::Gone(_));
        if events.send(input).is_err() || is_gone {
            return;
        }
    }
}

/// Returns what an event of the terminal means.
fn meant(event: event::Event) -> Option<Event> {
    match event {
        event::Event::Key(key) if key.kind != KeyEventKind::Release => pressed(key).map(Event::Key),
        event::Event::Resize(width, height) => Some(Event::Size(width, height)),
        _ => None,
    }
}

fn pressed(key: KeyEvent) -> Option<Key> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Key::Interrupt),
            KeyCode::Char('u') => Some(Key::Clear),
            KeyCode::Char('f') => Some(Key::PageDown),
            KeyCode::Char('b') => Some(Key::PageUp),
            _ => None,
        };
    }
    Some(match key.code {
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}
