use super::*;
use crate::report::example;

fn titles(workload: &str) -> Vec<String> {
    let results = example::results();
    let found = results
        .workloads
        .iter()
        .find(|w| w.name == workload)
        .unwrap();
    charts(&results, found)
        .into_iter()
        .map(|chart| chart.title)
        .collect()
}

#[test]
fn a_metric_with_several_points_is_one_curve_and_others_are_bars() {
    let expected = [
        "bytes, B/thread",
        "spawn, ns/thread",
        "in 1024 MiB: most threads, threads",
    ];
    assert_eq!(titles("parked"), expected);
}

#[test]
fn a_metric_without_values_has_no_chart() {
    assert_eq!(titles("chain"), Vec::<String>::new());
}

#[test]
fn names_cannot_break_out_of_a_picture() {
    let mut results = example::results();
    results.peers[1].title = "<script>alert(1)</script>".into();
    for chart in results.workloads.iter().flat_map(|w| charts(&results, w)) {
        assert!(!chart.svg.contains("<script"), "{}", chart.svg);
    }
}
