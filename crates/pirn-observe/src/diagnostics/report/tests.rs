use super::*;

#[test]
fn a_site_is_written_once_per_period_and_says_how_often_it_was_not() {
    let mut reporter = Reporter::new();
    let kind = Kind::PoolFull;
    assert_eq!(reporter.admit(kind, 1, 0), Some(0));
    assert_eq!(reporter.admit(kind, 1, 5), None);
    assert_eq!(reporter.admit(kind, 1, PERIOD_NS - 1), None);
    assert_eq!(reporter.admit(kind, 2, 5), Some(0), "another site");
    assert_eq!(
        reporter.admit(Kind::StuckCarrier, 1, 5),
        Some(0),
        "another kind"
    );
    assert_eq!(reporter.admit(kind, 1, PERIOD_NS), Some(2));
    assert_eq!(reporter.admit(kind, 1, PERIOD_NS + 1), None);
}

#[test]
fn memory_of_sites_is_bounded() {
    let mut reporter = Reporter::new();
    let sites = 10 * SITES as u64;
    let written = (0..sites).filter(|&site| reporter.admit(Kind::PoolFull, site, 9).is_some());
    assert_eq!(written.count(), SITES);
    assert_eq!(reporter.said.len(), SITES);
    let later = 9 + PERIOD_NS;
    assert_eq!(reporter.admit(Kind::PoolFull, sites, later), Some(0));
    assert_eq!(reporter.said.len(), 1);
}
