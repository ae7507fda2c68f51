use super::*;
use crate::report::example;

/// The lines from the one that begins with this on.
fn from<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    text.lines()
        .skip_while(|line| !line.trim_start().starts_with(start))
        .collect()
}

#[test]
fn no_line_is_too_long() {
    let text = table(&example::results());
    let long: Vec<&str> = text
        .lines()
        .filter(|line| line.chars().count() > WIDTH)
        .collect();
    assert_eq!(long, Vec::<&str>::new());
}

#[test]
fn a_metric_has_its_rows_the_best_first_and_the_ratio() {
    let text = table(&example::results());
    let lines = from(&text, "burst");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(lines[0]), "burst, lower is better median min max");
    assert_eq!(words(lines[1]), "> Pirn 146.2 140.1 171 ns/thread");
    assert_eq!(words(lines[2]), "JDK virtual threads 290 271 355 ns/thread");
    let end: Vec<&str> = lines
        .iter()
        .map(|line| line.trim())
        .skip_while(|line| !line.contains(" / "))
        .collect();
    assert_eq!(end[0], "Pirn / JDK virtual threads 0.504 (0.482 to 0.517)");
    assert_eq!(end[1], "goal 150 ns/thread: met");
}

#[test]
fn losses_are_listed_with_why_the_worst_first() {
    let text = table(&example::results());
    let lines = from(&text, "PIRN LOSES in ");
    assert!(
        lines[1].contains("errors") && lines[1].contains("∞"),
        "{}",
        lines[1]
    );
    assert_eq!(lines[2].trim(), "not yet explained");
    assert!(
        lines
            .iter()
            .any(|line| line.contains("main parks a platform thread")),
        "{lines:#?}"
    );
}

#[test]
fn what_is_missing_is_said_with_the_reason() {
    let text = table(&example::results());
    assert!(
        text.contains("Helidon (JDK virtual)     skipped: mvn was not found"),
        "{text}"
    );
    assert!(
        text.contains("OS threads (Rust) cannot: 1,000,000 threads"),
        "{text}"
    );
    assert!(text.contains("may not measured: it has no park"), "{text}");
    assert!(
        from(&text, "FAILURES").concat().contains("users: may: "),
        "{text}"
    );
    assert!(
        !text.contains('\x1b'),
        "a peer's words must not command the terminal"
    );
}

#[test]
fn quick_numbers_are_not_to_be_trusted() {
    let mut results = example::results();
    assert!(!table(&results).contains("THESE NUMBERS MEAN NOTHING"));
    results.quick = true;
    assert!(table(&results).contains("--quick: THESE NUMBERS MEAN NOTHING"));
}
