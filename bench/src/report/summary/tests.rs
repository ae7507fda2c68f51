use super::*;
use crate::catalog::{higher, lower};

fn metric(metric: Metric, values: &[(&str, &[f64])]) -> MetricResults {
    let row = |(peer, values): &(&str, &[f64])| Row::new(peer, values.to_vec(), None);
    MetricResults::new(metric, values.iter().map(row).collect(), vec![])
}

fn order(metric: &MetricResults) -> Vec<&str> {
    ranked(metric)
        .into_iter()
        .map(|row| row.peer.as_str())
        .collect()
}

#[test]
fn the_best_comes_first_whichever_way_is_better() {
    let values: &[(&str, &[f64])] = &[(PIRN, &[2.0]), ("go", &[3.0]), ("may", &[1.0])];
    assert_eq!(order(&metric(lower("m", "s"), values)), ["may", PIRN, "go"]);
    assert_eq!(
        order(&metric(higher("m", "1/s"), values)),
        ["go", PIRN, "may"]
    );
}

#[test]
fn outcomes_follow_the_direction() {
    let of = |metric_of: fn(&str, &str) -> Metric, ours| {
        outcome(&metric(
            metric_of("m", "u"),
            &[(PIRN, &[ours]), ("go", &[100.0])],
        ))
    };
    assert_eq!(
        [50.0, 101.0, 150.0].map(|v| of(lower, v).unwrap()),
        [Outcome::Win, Outcome::Draw, Outcome::Loss]
    );
    assert_eq!(
        [50.0, 101.0, 150.0].map(|v| of(higher, v).unwrap()),
        [Outcome::Loss, Outcome::Draw, Outcome::Win]
    );
    assert_eq!(outcome(&metric(lower("m", "s"), &[(PIRN, &[1.0])])), None);
}

#[test]
fn goals_are_for_pirn_only() {
    let of = |values: &[(&str, &[f64])]| goal_met(&metric(lower("m", "s").goal(5.0), values));
    assert_eq!(of(&[(PIRN, &[5.0])]), Some((5.0, true)));
    assert_eq!(of(&[(PIRN, &[6.0]), ("go", &[1.0])]), Some((5.0, false)));
    assert_eq!(of(&[("go", &[6.0])]), None);
}

#[test]
fn a_spread_is_told_only_where_there_is_one() {
    let of = |ours: &[f64]| {
        metric(
            lower("m", "s"),
            &[(PIRN, ours), ("go", &vec![2.0; ours.len()])],
        )
    };
    assert_eq!(
        ratio_with_spread(of(&[1.0]).verdict.as_ref().unwrap()),
        "0.500"
    );
    assert_eq!(
        ratio_with_spread(of(&[1.0, 2.0, 3.0]).verdict.as_ref().unwrap()),
        "1 (0.500 to 1.500)"
    );
    let none = metric(lower("m", "s"), &[(PIRN, &[1.0]), ("go", &[0.0])]);
    assert_eq!(ratio_with_spread(none.verdict.as_ref().unwrap()), "∞");
}

#[test]
fn foreign_text_is_one_line_without_control_characters() {
    assert_eq!(clean("a\x1b[31m\n\n  b\tc\0"), "a[31m b c");
    assert_eq!(shortened("abcdef", 4), "abc…");
    assert_eq!(shortened("äöüß", 4), "äöüß");
}
