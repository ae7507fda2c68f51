use super::*;
use std::collections::BTreeSet;

/// Returns a free map of `count` slots with stacks of 256 KiB, of which 8 share a page table, or
/// 123 if pages have 16 KiB.
fn free_map(count: usize, keep: usize) -> FreeMap {
    crate::sched::runtime::ensure_started().unwrap(); // It learns how large a TLS block is.
    let region = region::reserve(SizeClass::for_bytes(256 << 10), usize::MAX).unwrap();
    let mut free_map = FreeMap::new(region, keep);
    free_map.plan(count);
    free_map
}

/// Takes `count` slots. Returns their indices, and how many of them had no guard before.
fn take(free_map: &mut FreeMap, count: usize) -> (Vec<usize>, usize) {
    let mut out = vec![Slot(0); count];
    let (len, unguarded) = free_map.take(&mut out);
    region::install_guards(&out[..unguarded]).unwrap();
    let mut indices: Vec<_> = out[..len].iter().map(|slot| slot.index()).collect();
    indices.sort_unstable();
    (indices, unguarded)
}

/// Returns the slots of the runs that were closed: some, unless page tables are larger than runs.
fn closed(runs: &[(Range<usize>, bool)]) -> BTreeSet<usize> {
    let closed = runs.iter().filter(|(_, close)| *close);
    let closed = BTreeSet::from_iter(closed.flat_map(|(run, _)| run.clone()));
    assert_eq!(closed.is_empty(), table_span() > 64 << 20, "{runs:?}");
    closed
}

/// Gives back all that is dirty. Returns the slots of each run, and whether it was closed.
fn trim(free_map: &mut FreeMap) -> Vec<(Range<usize>, bool)> {
    let mut runs = Vec::new();
    while let Some(batch) = free_map.take_dirty() {
        let taken = batch.runs().iter();
        runs.extend(taken.map(|run| (run.slots.clone(), run.close)));
        free_map.put_back(&batch);
    }
    runs
}

#[test]
fn the_lowest_slots_are_taken_first() {
    let mut free_map = free_map(100, 0);
    assert_eq!(take(&mut free_map, 3), (vec![0, 1, 2], 3));
    assert_eq!(take(&mut free_map, 2), (vec![3, 4], 2));
    free_map.put(1);
    free_map.put(4);
    assert_eq!(take(&mut free_map, 3), (vec![1, 4, 5], 1));
    assert_eq!(
        take(&mut free_map, 200).0,
        Vec::from_iter([0; 0].into_iter().chain(6..100))
    );
    assert_eq!(take(&mut free_map, 1), (vec![], 0));
}

#[test]
fn free_neighbours_are_closed_together_and_lose_their_guards() {
    let mut free_map = free_map(1000, 0);
    take(&mut free_map, 600);
    (0..600).for_each(|i| free_map.put(i));
    let runs = trim(&mut free_map);
    let closed = closed(&runs);
    assert!(closed.is_empty() || closed.len() >= 600, "{runs:?}");
    // Each run begins within the page table in which the run before it has ended.
    let overlap = if closed.is_empty() { 0 } else { 8 };
    let mut end = 0;
    for (run, _) in runs {
        assert!(
            run.start == 0 || run.start + overlap <= end,
            "{run:?} after {end}"
        );
        end = run.end;
    }
    assert!(end >= 600);
    let unguarded = if closed.is_empty() { 0 } else { 600 };
    assert_eq!(take(&mut free_map, 600).1, unguarded);
    assert!(trim(&mut free_map).is_empty(), "nothing is dirty");
}

#[test]
fn a_slot_in_use_keeps_its_neighbours_apart() {
    let mut free_map = free_map(100, 0);
    take(&mut free_map, 100);
    (0..100)
        .filter(|i| i % 4 != 3)
        .for_each(|i| free_map.put(i));
    // Three slots never fill a page table.
    let expected = (0..25).map(|i| (4 * i..4 * i + 3, false));
    assert_eq!(trim(&mut free_map), Vec::from_iter(expected));
    // They have kept their guards.
    assert_eq!(take(&mut free_map, 75).1, 0);
}

#[test]
fn kept_slots_stay_open() {
    let mut free_map = free_map(600, 50);
    take(&mut free_map, 600);
    (0..600).for_each(|i| free_map.put(i));
    let runs = trim(&mut free_map);
    let closed = closed(&runs);
    assert!(closed.iter().all(|&i| i >= 50), "{runs:?}");
    assert_eq!(take(&mut free_map, 600).1, closed.len());
}

#[test]
fn a_dirty_batch_is_not_taken_again() {
    let mut free_map = free_map(20, 0);
    take(&mut free_map, 20);
    (5..20).for_each(|i| free_map.put(i));
    let batch = free_map.take_dirty().unwrap();
    assert_eq!(take(&mut free_map, 20).0, []);
    free_map.put_back(&batch);
    assert_eq!(take(&mut free_map, 20).0, Vec::from_iter(5..20));
}

#[test]
fn closed_slots_are_not_visited() {
    let mut free_map = free_map(600, 0);
    let number = free_map.region;
    let open = || {
        let mut count = 0;
        region::for_each_open(|slot| count += usize::from(slot.region() == number));
        count
    };
    assert_eq!(open(), 0);
    take(&mut free_map, 600);
    assert_eq!(open(), 600);
    (0..590).for_each(|i| free_map.put(i));
    let closed = closed(&trim(&mut free_map));
    assert_eq!(open(), 600 - closed.len());
    take(&mut free_map, 570);
    assert_eq!(open(), 600 - closed.range(570..).count());
}
