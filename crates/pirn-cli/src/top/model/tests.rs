//! What keys and news do to the state.

use super::*;
use pirn_dump::{Dump, Group, Place, Stack, State as ThreadState, Thread, Wait};
use pirn_live::{CarrierSample, Identity, Sample, Snapshot, Status};
use std::sync::Arc;
use std::time::Instant;

/// A name that tries to get out of its column: escape sequences, directions, wide characters.
pub const HOSTILE: &str = "\x1b[2J\x1b[31mevil\r\n\u{202e}\u{301}名前名前名前名前名前名前";

/// A process whose groups have so many threads. Thread 1 has a hostile name.
pub fn dump(counts: &[u64]) -> Dump {
    let group = |(number, count): (u32, &u64)| Group {
        stack: Some(number),
        state: ThreadState::Waiting,
        place: Some(0),
        count: *count,
        oldest: Some(1_000_000_000 * u64::from(number)),
        examples: vec![number],
        ..Group::default()
    };
    let thread = |number: u32| Thread {
        id: u64::from(number) + 1,
        name: Some(match number {
            0 => HOSTILE.into(),
            _ => format!("conn-{number}").into(),
        }),
        state: ThreadState::Waiting,
        wait: Wait::Join { thread: 1 },
        stack: Some(number),
        place: Some(0),
        mounts: 10 * u64::from(number),
        unmoved_since: Some(1_000_000_000 * u64::from(number)),
        ..Thread::default()
    };
    let number = counts.len() as u32;
    let mut dump = Dump {
        groups: (0..).zip(counts).map(group).collect(),
        threads: (0..number).map(thread).collect(),
        stacks: (0..number)
            .map(|number| Stack {
                frames: vec![0x1000 + u64::from(number)],
                ..Stack::default()
            })
            .collect(),
        places: vec![Place {
            file: "src/main.rs".into(),
            line: 7,
            column: 1,
        }],
        ..Dump::default()
    };
    dump.process.end = 100_000_000_000;
    dump.totals.listed = counts.iter().sum();
    dump
}

/// A sample of a process with so many carriers.
pub fn sample(elapsed: f64, carriers: u32) -> Arc<Sample> {
    let carrier = |number| CarrierSample {
        number,
        processor: number,
        tid: Some(100 + number),
        state: if number == 0 {
            "running"
        } else {
            "\x1b[7msleeping"
        }
        .into(),
        run_queue: u64::from(number),
        mounts: (elapsed * 500.0) as u64,
        ..CarrierSample::default()
    };
    let mut sample = Sample {
        elapsed,
        carriers: (0..carriers).map(carrier).collect(),
        ..Sample::default()
    };
    sample.threads.waiting = 1_000_012;
    sample.counters.mounts = (elapsed * 1000.0) as u64;
    Arc::new(sample)
}

/// News with a dump.
pub fn news(dump: Dump, want: Want, number: u64) -> Event {
    Event::News(Box::new(News {
        identity: Identity {
            pid: 4711,
            started: 1,
            name: "shop".into(),
            program: "/usr/bin/shop".into(),
        },
        uptime: Duration::from_secs(3700),
        samples: vec![sample(1.0, 2), sample(2.0, 2)],
        snapshot: Some(Arc::new(Snapshot::of(
            dump,
            want,
            number,
            &[(2, 0), (3, 0)],
        ))),
        status: Status::Alive,
        trouble: None,
        next_dump: Duration::from_secs(7),
        now: Instant::now(),
    }))
}

pub fn state(page: Page) -> State {
    State::new(page, None, Conditions::default(), Duration::from_secs(1))
}

/// Brings what the page wants.
pub fn bring(state: &mut State, dump: Dump, number: u64) {
    let want = state.want();
    state.update(news(dump, want, number));
}

pub fn press(state: &mut State, keys: &[Key]) {
    for key in keys {
        state.update(Event::Key(*key));
    }
}

pub fn write(state: &mut State, text: &str) {
    for c in text.chars() {
        state.update(Event::Key(Key::Char(c)));
    }
}

fn with_groups(counts: &[u64]) -> State {
    let mut state = state(Page::Groups);
    bring(&mut state, dump(counts), 1);
    state
}

#[test]
fn pages_are_turned_by_keys() {
    let mut state = with_groups(&[3, 2, 1]);
    assert_eq!((state.page, state.rows.len()), (Page::Groups, 3));
    assert_eq!(state.want(), Want::Examples);
    write(&mut state, "2");
    assert_eq!(state.page, Page::Threads);
    assert_eq!(state.want(), Want::All { max: MOST_THREADS });
    assert!(
        state.rows.is_empty(),
        "a dump with examples does not have all threads"
    );
    bring(&mut state, dump(&[1, 1, 1]), 2);
    assert_eq!(state.rows.len(), 3);
    press(&mut state, &[Key::Tab]);
    assert_eq!((state.page, state.rows.len()), (Page::Carriers, 2));
    press(&mut state, &[Key::Tab, Key::BackTab, Key::Char('1')]);
    assert_eq!(state.page, Page::Groups);
}

#[test]
fn the_chosen_row_stays_chosen() {
    let mut state = with_groups(&[3, 2, 1]);
    press(&mut state, &[Key::Down]);
    assert_eq!(state.cursor().row, 1);
    // The group comes first now.
    let mut turned = dump(&[3, 9, 1]);
    turned.groups.swap(0, 1);
    bring(&mut state, turned, 2);
    assert_eq!((state.rows[0], state.cursor().row), (0, 0));
    bring(&mut state, dump(&[3, 2, 1]), 3);
    assert_eq!(state.cursor().row, 1);
    // It is gone.
    bring(&mut state, dump(&[3]), 4);
    assert_eq!(state.cursor().row, 0);
    press(
        &mut state,
        &[Key::End, Key::Up, Key::PageUp, Key::PageDown, Key::Home],
    );
    assert_eq!(state.cursor().row, 0);
}

#[test]
fn the_chosen_row_is_visible() {
    let mut state = with_groups(&[1; 100]);
    let room = usize::from(Layout::of(&state).rows);
    assert!((5..50).contains(&room));
    press(&mut state, &[Key::End]);
    assert_eq!((state.cursor().row, state.cursor().top), (99, 100 - room));
    state.update(Event::Size(80, 12));
    let room = usize::from(Layout::of(&state).rows);
    assert_eq!(state.cursor().top, 100 - room);
    press(&mut state, &[Key::PageUp]);
    assert_eq!(
        (state.cursor().row, state.cursor().top),
        (99 - room, 99 - room)
    );
    state.update(Event::Size(80, 60));
    assert!(state.cursor().top <= 99 - room);
    press(&mut state, &[Key::Char('g')]);
    assert_eq!((state.cursor().row, state.cursor().top), (0, 0));
}

#[test]
fn rows_are_sorted_as_asked() {
    let mut state = with_groups(&[9, 5, 1]);
    bring(&mut state, dump(&[9, 4, 3]), 2);
    assert_eq!(state.rows, [0, 1, 2]);
    write(&mut state, "s");
    assert_eq!(
        (state.sort(), &state.rows[..]),
        (Sort::Growth, &[2, 0, 1][..])
    );
    write(&mut state, "s");
    assert_eq!((state.sort(), &state.rows[..]), (Sort::Age, &[0, 1, 2][..]));
    write(&mut state, "s");
    assert_eq!(state.sort(), Sort::Count);

    write(&mut state, "2");
    bring(&mut state, dump(&[1, 1, 1]), 3);
    // The third has been mounted 20 times since, the second 10 times, the first is new.
    assert_eq!(
        (state.sort(), &state.rows[..]),
        (Sort::Mounts, &[2, 1, 0][..])
    );
    // It may loop, and so is hardly ever mounted.
    let mut runs = dump(&[1, 1, 1]);
    runs.threads[0].state = ThreadState::Running;
    bring(&mut state, runs, 4);
    assert_eq!(state.rows[0], 0);
    write(&mut state, "ss");
    assert_eq!(
        (state.sort(), &state.rows[..]),
        (Sort::Name, &[0, 1, 2][..])
    );
    write(&mut state, "3sss");
    assert_eq!((state.sort(), &state.rows[..]), (Sort::Stuck, &[0, 1][..]));
}

#[test]
fn conditions_choose_rows() {
    let mut state = with_groups(&[1, 1, 1]);
    write(&mut state, "/state=waiting,frame=0x1001");
    assert!(state.editing.is_some());
    press(&mut state, &[Key::Enter]);
    assert_eq!(state.editing, None);
    assert_eq!((state.rows.len(), state.want()), (1, Want::Examples));
    // A condition on single threads takes all of them.
    write(&mut state, "/");
    press(&mut state, &[Key::Clear]);
    write(&mut state, "conn-");
    press(&mut state, &[Key::Enter]);
    assert_eq!(state.want(), Want::All { max: MOST_FILTERED });
    assert!(state.rows.is_empty());
    bring(&mut state, dump(&[1, 1, 1]), 2);
    assert_eq!(state.rows.len(), 2);
    press(&mut state, &[Key::Escape]);
    assert_eq!(
        (state.conditions.text.as_str(), state.want()),
        ("", Want::Examples)
    );
}

#[test]
fn wrong_conditions_are_explained_and_may_be_left() {
    let mut state = with_groups(&[1, 1]);
    write(&mut state, "/colour=red");
    press(&mut state, &[Key::Enter]);
    let editing = state.editing.clone().unwrap();
    assert!(
        editing
            .error
            .unwrap()
            .starts_with("there is no condition \"colour\"")
    );
    press(&mut state, &[Key::Backspace]);
    assert_eq!(state.editing.clone().unwrap().error, None);
    press(&mut state, &[Key::Escape]);
    assert_eq!((state.editing.clone(), state.rows.len()), (None, 2));
    // Commands are letters there.
    write(&mut state, "/q");
    assert!(!state.quits);
    press(&mut state, &[Key::Interrupt]);
    assert!(state.quits);
}

#[test]
fn a_stack_is_opened_scrolled_and_left() {
    let mut state = with_groups(&[5, 1]);
    state.update(Event::Size(80, 10));
    press(&mut state, &[Key::Down, Key::Enter]);
    let Over::Stack(page) = &state.over else {
        panic!("no stack: {:?}", state.over);
    };
    assert_eq!(page.title, "1 thread waiting");
    assert!(
        page.lines
            .contains(&Line::Fact("spawned at", "src/main.rs:7".into()))
    );
    assert!(
        page.lines.contains(&Line::Library("0x1001".into())),
        "{:?}",
        page.lines
    );
    press(&mut state, &[Key::End]);
    assert!(state.scroll > 0);
    let furthest = state.scroll;
    press(&mut state, &[Key::Down, Key::PageDown]);
    assert_eq!(state.scroll, furthest);
    press(&mut state, &[Key::Home]);
    assert_eq!((state.scroll, state.cursor().row), (0, 1));
    press(&mut state, &[Key::Escape]);
    assert!(matches!(state.over, Over::Nothing));
    write(&mut state, "h");
    assert!(matches!(state.over, Over::Help));
    write(&mut state, "q");
    assert!(matches!(state.over, Over::Nothing) && !state.quits);
    write(&mut state, "q");
    assert!(state.quits);
}

#[test]
fn a_paused_page_stays_and_says_if_the_process_ends() {
    let mut state = with_groups(&[5, 1]);
    write(&mut state, "p");
    let Event::News(mut news) = news(dump(&[1]), Want::Examples, 2) else {
        unreachable!();
    };
    news.status = Status::Ended("process 4711 (\"shop\") has ended".into());
    state.update(Event::News(news));
    assert_eq!(state.rows.len(), 2);
    assert!(matches!(state.scene.status, Some(Status::Ended(_))));
    write(&mut state, " ");
    bring(&mut state, dump(&[1]), 3);
    assert_eq!(state.rows.len(), 1);
}

#[test]
fn intervals_are_changed_in_steps() {
    let mut state = with_groups(&[1]);
    write(&mut state, "++");
    assert_eq!(state.interval, Duration::from_secs(5));
    write(&mut state, &"+".repeat(20));
    assert_eq!(state.interval, Duration::from_secs(60));
    write(&mut state, &"-".repeat(20));
    assert_eq!(state.interval, Duration::from_millis(100));
}

#[test]
fn signals_end_it() {
    let mut state = with_groups(&[1]);
    state.update(Event::Quit);
    assert!(state.quits);
}
