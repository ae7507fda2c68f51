use super::*;

#[test]
fn a_place_is_written_once_per_period_and_says_how_often_it_was_not() {
    let mut reporter = Reporter::new();
    let lint = Lint::PoolFull;
    assert_eq!(reporter.admit(lint, 1, 0), Some(0));
    assert_eq!(reporter.admit(lint, 1, 5), None);
    assert_eq!(reporter.admit(lint, 1, PERIOD_NS - 1), None);
    assert_eq!(reporter.admit(lint, 2, 5), Some(0), "another place");
    assert_eq!(
        reporter.admit(Lint::DeepStack, 1, 5),
        Some(0),
        "another lint"
    );
    assert_eq!(reporter.admit(lint, 1, PERIOD_NS), Some(2));
    assert_eq!(reporter.admit(lint, 1, PERIOD_NS + 1), None);
}

#[test]
fn memory_of_places_is_bounded() {
    let mut reporter = Reporter::new();
    let places = 10 * PLACES as u64;
    let written = (0..places).filter(|&place| reporter.admit(Lint::PoolFull, place, 9).is_some());
    assert_eq!(written.count(), PLACES);
    assert_eq!(reporter.said.len(), PLACES);
    let later = 9 + PERIOD_NS;
    assert_eq!(reporter.admit(Lint::PoolFull, places, later), Some(0));
    assert_eq!(reporter.said.len(), 1);
}

#[test]
fn the_last_ones_are_kept_in_order() {
    for number in 0..2 * KEPT {
        let text = format!("kept {number}");
        keep(&Report::new(Lint::DroppedEvents, 0, text));
    }
    let texts: Vec<_> = recent().iter().map(|recent| recent.text.clone()).collect();
    let expected: Vec<_> = (KEPT..2 * KEPT)
        .map(|number| format!("kept {number}"))
        .collect();
    assert_eq!(texts, expected);
    assert!(totals().any(|(name, _)| name == "dropped-events"));
}
