use super::*;

#[test]
fn latencies_are_counted_in_microseconds() {
    let tally = Tally::new();
    for millis in 1..=100 {
        tally.answered(Duration::from_millis(millis));
    }
    let latencies = tally.latencies();
    assert_eq!((latencies.len(), tally.answered_so_far()), (100, 100));
    let median = latencies.value_at_quantile(0.5);
    assert!(latencies.equivalent(median, 50_000), "{median}");
}

#[test]
fn errors_are_counted_by_kind_and_only_the_first_kinds_are_kept() {
    let tally = Tally::new();
    for round in 0..3 {
        for kind in 0..10 {
            tally.failed(&format!("error {kind}"));
        }
        assert_eq!(tally.errors().count, (round + 1) * 10);
    }
    let expected: Vec<_> = (0..5).map(|kind| (format!("error {kind}"), 3)).collect();
    assert_eq!(tally.errors().first, expected);
}
