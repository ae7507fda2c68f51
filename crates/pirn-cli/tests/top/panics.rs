//! A panic gives the terminal back before it says what has happened.
//!
//! Nothing in `pirn top` panics on demand, so this is a program of the tests' own in the terminal,
//! with the same code for taking it.

use std::io::{Read, Write};
use std::{env, io, process, thread};

use super::terminal::Terminal;
use screen::Screen;

#[path = "../../src/top/terminal.rs"]
#[allow(dead_code, reason = "nothing is drawn here")]
mod screen;

/// Says which thread of the program is to panic.
const WHICH: &str = "PIRN_TEST_PANICS";
const NAME: &str = "panics::a_panic_gives_the_terminal_back_and_is_seen";
const DRAWN: &str = "a page";
const MESSAGE: &str = "nothing is right any more";

#[test]
fn a_panic_gives_the_terminal_back_and_is_seen() {
    if let Ok(which) = env::var(WHICH) {
        return be_a_program(&which);
    }
    let program = env::current_exe().unwrap();
    for (which, code) in [("drawing", 101), ("other", 3)] {
        let variable = format!("{WHICH}={which}");
        let arguments = ["--exact", NAME, "--nocapture"];
        let command = [
            &["env", &variable, program.to_str().unwrap()],
            &arguments[..],
        ]
        .concat();
        let mut program = Terminal::start(&command, 120, 30);
        program.until_has(&[DRAWN]);
        assert!(program.screen().alternate_screen() && program.screen().hide_cursor());
        program.write("x");
        assert_eq!(program.ended().code(), Some(code), "{}", program.text());
        // Not on the page, which is gone.
        let text = program.until_has(&["panicked at", MESSAGE]);
        assert!(!text.contains(DRAWN), "{text}");
    }
}

/// Takes the terminal, and panics at the first key.
fn be_a_program(which: &str) {
    let _screen = Screen::take().unwrap();
    print!("{DRAWN}");
    io::stdout().flush().unwrap();
    io::stdin().read_exact(&mut [0]).unwrap();
    if which == "drawing" {
        panic!("{MESSAGE}");
    }
    let other = thread::spawn(|| panic!("{MESSAGE}"));
    assert!(other.join().is_err());
    process::exit(3); // Without giving anything back.
}
