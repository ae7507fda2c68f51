//! Text as it is shown.

use crate::model::*;
use crate::samples::{everything, names};
use crate::view::{Format, View};

fn text(dump: &Dump, format: Format, view: &View) -> String {
    let mut text = Vec::new();
    format.write(dump, &names(dump), view, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn shown(dump: &Dump, format: Format) -> String {
    text(dump, format, &View::default())
}

/// A thousand threads that read and two that wait for each other.
fn service() -> Dump {
    let mut dump = everything();
    let readers = (0..1000).map(|number| Thread {
        id: 100 + number,
        ..dump.threads[3].clone()
    });
    let mut threads: Vec<Thread> = readers.collect();
    threads.extend([dump.threads[1].clone(), dump.threads[0].clone()]);
    threads.iter_mut().for_each(|thread| thread.stack = Some(0));
    threads[0].unmoved_since = Some(500_000_000);
    threads[1].until = None;
    (dump.threads, dump.memory, dump.findings) = (threads, Vec::new(), Vec::new());
    dump.modules[0].path = b"/usr/bin/server".into();
    dump.regroup();
    dump
}

#[test]
fn groups_have_numbers_examples_places_and_stacks() {
    let text = shown(&service(), Format::Text);
    let expected = include_str!("groups.txt");
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn what_is_left_out_is_counted() {
    let dump = service();
    let view = View {
        max: Some(1),
        ..View::default()
    };
    assert!(text(&dump, Format::Text, &view).ends_with("\n2 groups more, 2 threads\n"));
    assert!(text(&dump, Format::Threads, &view).ends_with("\n1,001 threads more\n"));
}

#[test]
fn frames_of_the_runtime_are_shown_if_asked_for() {
    let view = View {
        runtime_frames: true,
        ..View::default()
    };
    let text = text(&service(), Format::Text, &view);
    let stack = "      pirn::vthread::park at /pirn/src/park.rs:7\n      pirn::blocking::wait at /pirn/src/wait.rs:8\n";
    assert!(text.contains(stack), "{text}");
}

#[test]
fn a_tree_has_the_threads_of_each_scope() {
    let text = shown(&service(), Format::Tree);
    let expected = [
        "in no scope, 1,001 threads\n|   #100 ",
        "|   and 997 more waiting to read from a descriptor; server::<script>",
        "scope 7 \"orders/\\\"x\\\"\\n\", 5 subtasks\n|   #2 ",
        "|   scope 8, cancelled, owned by #2 \"a \\\"quoted\\\"",
    ];
    let mut rest = &text[..];
    for part in expected {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("{part} is missing:\n{text}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn scopes_in_a_circle_end() {
    let mut dump = everything();
    dump.scopes[0].parent = Some(8);
    dump.scopes.push(Scope {
        id: 9,
        parent: Some(9),
        ..Scope::default()
    });
    dump.scopes.push(Scope {
        id: 9,
        parent: Some(1234),
        ..Scope::default()
    });
    assert!(shown(&dump, Format::Tree).contains("scope 9"));
}

#[test]
fn no_line_of_text_is_somebody_elses() {
    let dump = everything();
    for format in [Format::Text, Format::Threads, Format::Tree] {
        let text = shown(&dump, format);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
        assert!(
            !text.lines().any(|line| line.starts_with("# goroutine")),
            "{text}"
        );
        assert!(!text.contains('\u{202e}'));
    }
}

#[test]
fn each_thread_says_what_it_waits_for() {
    let text = shown(&everything(), Format::Threads);
    for words in [
        "  new, for at least 1.0 s, on carrier 0\n",
        "#2 \"a \\\"quoted\\\" \\\\ name / with, commas; and = signs\"  waiting, mutex 0x7f0000001000",
        "write fd 13",
        "poll of 3 descriptors",
        "waiting, works for \"orders\" > \"shop::Buy\\\"\\x1b[2J\\n\", sleep, 0.5 s left, for at least 1.0 s",
        "join #4 \"two",
        "join scope 7",
        "child process 4711",
        "call getaddrinfo",
        ", a platform thread",
        "(what called it is not known)",
    ] {
        assert!(text.contains(words), "{words} is missing:\n{text}");
    }
}

#[test]
fn paths_of_libraries_are_short() {
    for (path, short) in [
        (
            "/rustc/0123/library/std/src/io/mod.rs",
            "library/std/src/io/mod.rs",
        ),
        (
            "/root/.cargo/registry/src/index-12/tokio-1.0.0/src/lib.rs",
            "tokio-1.0.0/src/lib.rs",
        ),
        ("/src/library/main.rs", "/src/library/main.rs"),
        ("src/main.rs", "src/main.rs"),
        ("/registry/src/", "/registry/src/"),
    ] {
        assert_eq!(super::stack::short(path), short);
    }
}
