use super::*;

/// Returns a row of `count` slots with stacks of 256 KiB, of which 8 share a page table.
fn row(count: usize, keep: usize) -> Row {
    let region = region::reserve(SizeClass::for_bytes(256 << 10), usize::MAX).unwrap();
    let mut row = Row::new(region, keep);
    row.plan(count);
    row
}

/// Takes `count` slots. Returns their indices, and how many of them have no guard.
fn take(row: &mut Row, count: usize) -> (Vec<usize>, usize) {
    let mut out = vec![Slot(0); count];
    let (len, unguarded) = row.take(&mut out);
    let mut indices: Vec<_> = out[..len].iter().map(|slot| slot.index()).collect();
    indices.sort_unstable();
    (indices, unguarded)
}

/// Gives back all that is dirty. Returns the slots of each run, and whether it was closed.
fn trim(row: &mut Row) -> Vec<(Range<usize>, bool)> {
    let mut runs = Vec::new();
    while let Some(claim) = row.claim() {
        let claimed = claim.runs().iter();
        runs.extend(claimed.map(|run| (run.slots.clone(), run.close)));
        row.put_back(&claim);
    }
    runs
}

#[test]
fn the_lowest_slots_are_taken_first() {
    let mut row = row(100, 0);
    assert_eq!(take(&mut row, 3), (vec![0, 1, 2], 3));
    assert_eq!(take(&mut row, 2), (vec![3, 4], 2));
    row.put(1);
    row.put(4);
    assert_eq!(take(&mut row, 3), (vec![1, 4, 5], 1));
    assert_eq!(
        take(&mut row, 200).0,
        Vec::from_iter([0; 0].into_iter().chain(6..100))
    );
    assert_eq!(take(&mut row, 1), (vec![], 0));
}

#[test]
fn free_neighbours_are_closed_together_and_lose_their_guards() {
    let mut row = row(1000, 0);
    take(&mut row, 600);
    (0..600).for_each(|i| row.put(i));
    let runs = trim(&mut row);
    assert!(runs.iter().all(|(_, close)| *close), "{runs:?}");
    // Each run begins within the page table in which the run before it has ended.
    let mut end = 0;
    for (run, _) in runs {
        assert!(
            run.start == 0 || run.start + 8 <= end,
            "{run:?} after {end}"
        );
        end = run.end;
    }
    assert!(end >= 600);
    assert_eq!(take(&mut row, 600).1, 600);
    assert!(trim(&mut row).is_empty(), "nothing is dirty");
}

#[test]
fn a_slot_in_use_keeps_its_neighbours_apart() {
    let mut row = row(100, 0);
    take(&mut row, 100);
    (0..100).filter(|i| i % 4 != 3).for_each(|i| row.put(i));
    // Three slots never fill a page table.
    let expected = (0..25).map(|i| (4 * i..4 * i + 3, false));
    assert_eq!(trim(&mut row), Vec::from_iter(expected));
    // They have kept their guards.
    assert_eq!(take(&mut row, 75).1, 0);
}

#[test]
fn kept_slots_stay_open() {
    let mut row = row(200, 50);
    take(&mut row, 200);
    (0..200).for_each(|i| row.put(i));
    let runs = trim(&mut row);
    let closed = |range: &Range<usize>| range.start >= 50;
    assert!(
        runs.iter().all(|(run, close)| closed(run) == *close),
        "{runs:?}"
    );
    assert_eq!(take(&mut row, 200).1, 150);
}

#[test]
fn what_is_claimed_is_not_taken() {
    let mut row = row(20, 0);
    take(&mut row, 20);
    (5..20).for_each(|i| row.put(i));
    let claim = row.claim().unwrap();
    assert_eq!(take(&mut row, 20).0, []);
    row.put_back(&claim);
    assert_eq!(take(&mut row, 20).0, Vec::from_iter(5..20));
}

#[test]
fn closed_slots_are_not_visited() {
    let mut row = row(100, 0);
    let number = row.region;
    let open = || {
        let mut count = 0;
        region::for_each_open(|slot| count += usize::from(slot.region() == number));
        count
    };
    let open_some = |row: &mut Row, count| {
        let mut out = vec![Slot(0); count];
        let (_, unguarded) = row.take(&mut out);
        region::install_guards(&out[..unguarded]).unwrap();
    };
    assert_eq!(open(), 0);
    open_some(&mut row, 100);
    assert_eq!(open(), 100);
    (0..90).for_each(|i| row.put(i));
    trim(&mut row);
    assert_eq!(open(), 10);
    open_some(&mut row, 70);
    assert_eq!(open(), 80);
}
