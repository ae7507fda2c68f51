//! What pages look like, in a terminal of tests.

use super::super::model::tests::{HOSTILE, bring, dump, press, sample, state, write};
use super::super::model::{Event, Key, News, Page, State};
use super::*;
use crate::top::batch::lines;
use pirn_live::{Identity, Status};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::time::{Duration, Instant};

fn drawn(state: &mut State, width: u16, height: u16) -> Vec<String> {
    state.update(Event::Size(width, height));
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let theme = Theme { colors: true };
    let pen = Pen { state, theme };
    terminal
        .draw(|frame| draw(pen, Layout::of(state), frame.buffer_mut()))
        .unwrap();
    lines(terminal.backend().buffer())
}

fn text(state: &mut State) -> String {
    drawn(state, 120, 30).join("\n")
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn the_head_has_the_process_in_numbers() {
    let mut state = state(Page::Groups);
    bring(&mut state, dump(&[1_000_000, 12]), 1);
    let text = text(&mut state);
    assert_has(
        &text,
        &[
            "shop  pid 4711  up 1 h 1 min",
            "threads     1,000,012 in all",
            "per second      0 spawned      0 ended  1,000 mounts",
            "carrier 0   running",
            "500 mounts/s",
        ],
    );
}

#[test]
fn groups_have_rows() {
    let mut state = state(Page::Groups);
    bring(&mut state, dump(&[1_000_000, 12]), 1);
    bring(&mut state, dump(&[1_000_000, 15]), 2);
    let lines = drawn(&mut state, 120, 30);
    let row = lines
        .iter()
        .find(|line| line.contains("1,000,000"))
        .unwrap();
    assert_has(row, &["waiting", "100 s", "src/main.rs:7", "0x1000"]);
    let row = lines.iter().find(|line| line.contains("+3")).unwrap();
    assert_has(row, &["15", "0x1001"]);
    assert_has(lines.last().unwrap(), &["q quit", "/ filter"]);
    assert_has(
        &lines[lines.len() - 2],
        &["1 of 2 groups; dump 0.0 s old, took 30 ms, next in 7 s"],
    );
}

#[test]
fn threads_and_carriers_have_rows() {
    let mut state = state(Page::Threads);
    assert_has(&text(&mut state), &["a dump is being taken"]);
    let mut cut = dump(&[1, 1, 1]);
    (cut.totals.listed, cut.totals.cut) = (1_000_003, 1_000_000);
    bring(&mut state, cut, 1);
    let shown = text(&mut state);
    assert_has(&shown, &["\"conn-2\"", "10", "join #1 \"\\x1b", "IN"]);
    assert_has(&shown, &["1,000,000 of 1,000,003 threads not looked at"]);
    write(&mut state, "3");
    let shown = text(&mut state);
    assert_has(&shown, &["MOUNTS/s", "101", "\\x1b[7msle"]);
}

#[test]
fn a_hostile_name_stays_in_its_column() {
    let mut state = state(Page::Threads);
    bring(&mut state, dump(&[1, 1]), 1);
    let rows: Vec<String> = drawn(&mut state, 160, 30);
    let place = |line: &str| {
        line.find("src/main.rs:7")
            .map(|at| line[..at].chars().count())
    };
    let of = |id: &str| rows.iter().find(|line| line.contains(id)).unwrap();
    // A wide character is one of two columns.
    let (hostile, tame) = (of("\\x1b[2J"), of("\"conn-1\""));
    let wide = hostile.chars().filter(|c| *c > '\u{3000}').count();
    assert_eq!(place(hostile).unwrap() + wide, place(tame).unwrap());
    for line in &rows {
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(!line.contains(['\u{202e}', '\u{301}']), "{line:?}");
    }
    press(&mut state, &[Key::End, Key::Enter]);
    let shown = text(&mut state);
    assert_has(&shown, &["thread #1", "\\u{202e}"]);
    assert!(!shown.contains(HOSTILE));
}

#[test]
fn no_size_is_too_small() {
    for page in Page::ALL {
        let mut state = state(page);
        for width in [0, 1, 2, 7, 20, 40, 80, 99, 100, 101, 300] {
            for height in [0, 1, 2, 3, 5, 8, 10, 12, 16, 24, 70] {
                drawn(&mut state, width, height);
            }
        }
        bring(&mut state, dump(&[1; 50]), 1);
        for keys in ["", "G", "h", "/state=wai", "\u{1b}"] {
            write(&mut state, keys);
            for width in [0, 1, 2, 7, 20, 40, 80, 99, 100, 101, 300] {
                for height in [0, 1, 2, 3, 5, 8, 10, 12, 16, 24, 70] {
                    drawn(&mut state, width, height);
                }
            }
        }
    }
}

#[test]
fn a_small_terminal_shows_rows() {
    let mut state = state(Page::Groups);
    bring(&mut state, dump(&[7, 5, 3, 1]), 1);
    let lines = drawn(&mut state, 40, 10);
    assert_has(
        &lines.join("\n"),
        &[
            "shop  pid 4711",
            "1 groups",
            "COUNT",
            "7",
            "5",
            "3",
            "q quit",
        ],
    );
    assert!(lines.iter().all(|line| line.chars().count() <= 40));
}

#[test]
fn an_end_and_a_silence_are_said() {
    let mut state = state(Page::Groups);
    bring(&mut state, dump(&[7]), 1);
    let mut tell = |status: Status| {
        let news = News {
            identity: Identity {
                pid: 4711,
                started: 1,
                name: "shop".into(),
                program: String::new(),
            },
            uptime: Duration::ZERO,
            samples: vec![sample(1.0, 64)],
            snapshot: None,
            status,
            trouble: Some("it is \x1b[2Jbusy".into()),
            next_dump: Duration::ZERO,
            now: Instant::now(),
        };
        state.update(Event::News(Box::new(news)));
        text(&mut state)
    };
    let silent = Status::Silent {
        seconds: 5,
        why: "it is stopped".into(),
    };
    assert_has(
        &tell(silent),
        &["silent for 5 seconds: it is stopped", "64 in all"],
    );
    let shown = tell(Status::Alive);
    assert_has(&shown, &["no newer dump: it is \\x1b[2Jbusy"]);
    let shown = tell(Status::Ended("process 4711 (\"shop\") has ended".into()));
    assert_has(
        &shown,
        &["process 4711 (\"shop\") has ended: q ends", "waiting"],
    );
}

#[test]
fn what_is_written_is_seen() {
    let mut state = state(Page::Groups);
    bring(&mut state, dump(&[7]), 1);
    write(&mut state, "/colour=red");
    press(&mut state, &[Key::Enter]);
    assert_has(
        &text(&mut state),
        &[
            "/colour=red",
            "there is no condition \"colour\"",
            "Esc leave",
        ],
    );
    press(&mut state, &[Key::Clear]);
    write(&mut state, "state=runnable");
    press(&mut state, &[Key::Enter]);
    assert_has(
        &text(&mut state),
        &["where state=runnable", "no thread meets the conditions"],
    );
}

#[test]
fn help_says_what_keys_do() {
    let mut state = state(Page::Groups);
    write(&mut state, "?");
    assert_has(
        &drawn(&mut state, 100, 50).join("\n"),
        &["Esc goes back", "name=conn*|worker*"],
    );
    assert!(HELP.lines().all(|line| line.chars().count() <= 80));
}
