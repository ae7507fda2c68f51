use super::*;
use crate::catalog::{higher, lower};

fn rows(values: &[(&str, &[f64])]) -> Vec<Row> {
    let row = |(peer, values): &(&str, &[f64])| Row::new(peer, values.to_vec(), None);
    values.iter().map(row).collect()
}

#[test]
fn the_best_of_the_others_is_compared_round_by_round() {
    let rows = rows(&[
        ("go", &[3.0, 3.0, 3.0]),
        (PIRN, &[2.0, 8.0, 2.0]),
        ("may", &[2.0, 4.0, 1.0]),
    ]);
    let verdict = MetricResults::new(lower("m", "s"), rows, vec![])
        .verdict
        .unwrap();
    assert_eq!((verdict.best.as_str(), verdict.loses), ("may", true));
    assert_eq!((verdict.median, verdict.min, verdict.max), (2.0, 1.0, 2.0));
}

#[test]
fn less_loses_where_higher_is_better() {
    let of = |ours: f64| {
        let rows = rows(&[(PIRN, &[ours]), ("go", &[100.0]), ("may", &[50.0])]);
        MetricResults::new(higher("m", "requests/s"), rows, vec![])
            .verdict
            .unwrap()
    };
    assert!(of(97.0).loses);
    assert!(!of(99.0).loses && !of(120.0).loses);
    assert_eq!(of(50.0).best, "go");
}

#[test]
fn no_errors_on_both_sides_is_a_draw() {
    let none = MetricResults::new(
        lower("errors", "%"),
        rows(&[(PIRN, &[0.0]), ("go", &[0.0])]),
        vec![],
    );
    assert_eq!(none.verdict.unwrap().median, 1.0);
    let some = MetricResults::new(
        lower("errors", "%"),
        rows(&[(PIRN, &[1.0]), ("go", &[0.0])]),
        vec![],
    );
    assert!(some.verdict.unwrap().loses);
}

#[test]
fn without_the_other_side_there_is_no_verdict() {
    assert!(
        MetricResults::new(lower("m", "s"), rows(&[(PIRN, &[1.0])]), vec![])
            .verdict
            .is_none()
    );
    assert!(
        MetricResults::new(lower("m", "s"), rows(&[("go", &[1.0])]), vec![])
            .verdict
            .is_none()
    );
}

#[test]
fn a_library_is_compared_with_others_and_not_with_the_server_of_a_textbook() {
    let rows = rows(&[
        (PIRN_HTTP, &[90.0]),
        (TEXTBOOK, &[200.0]),
        ("tokio", &[100.0]),
    ]);
    let verdict = MetricResults::new(higher("m", "requests/s"), rows, vec![])
        .verdict
        .unwrap();
    assert_eq!((verdict.best.as_str(), verdict.median), ("tokio", 0.9));
    assert!(does_all(PIRN_HTTP) && !does_all(TEXTBOOK));
}

#[test]
fn numbers_have_about_four_digits() {
    let numbers = [
        0.000123456,
        0.0123456,
        1.23456,
        12.3456,
        123.456,
        1234.56,
        1234567.0,
        -150000.0,
    ];
    let expected = [
        "0.00012",
        "0.0123",
        "1.235",
        "12.35",
        "123.5",
        "1,235",
        "1,234,567",
        "-150,000",
    ];
    assert_eq!(numbers.map(number), expected);
}
