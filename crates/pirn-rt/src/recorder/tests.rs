use super::kinds::*;
use super::*;
use pirn_events::kinds as known;

#[test]
fn the_reader_knows_the_same_kinds() {
    assert_eq!(FOREIGN, known::FOREIGN);
    let ours = [
        STATE,
        MOUNT,
        YIELD,
        PARK,
        PREEMPT,
        EXIT,
        SPAWN,
        WAKE,
        INTERRUPT,
        SCOPE_OPEN,
        SCOPE_CANCEL,
        SCOPE_CLOSE,
        OFFLOAD,
        OFFLOADED,
        SLEEP,
        AWAKE,
        STUCK,
        SPARE,
        PANIC,
        NAME,
        TEXT,
        DETAIL,
    ];
    let theirs = [
        known::STATE,
        known::MOUNT,
        known::YIELD,
        known::PARK,
        known::PREEMPT,
        known::EXIT,
        known::SPAWN,
        known::WAKE,
        known::INTERRUPT,
        known::SCOPE_OPEN,
        known::SCOPE_CANCEL,
        known::SCOPE_CLOSE,
        known::OFFLOAD,
        known::OFFLOADED,
        known::SLEEP,
        known::AWAKE,
        known::STUCK,
        known::SPARE,
        known::PANIC,
        known::NAME,
        known::TEXT,
        known::DETAIL,
    ];
    assert_eq!(ours, theirs);
}

fn ring(slots: usize) -> &'static CarrierRing {
    let slots = (0..slots).map(|_| Slot::new()).collect::<Vec<_>>();
    Box::leak(Box::new(CarrierRing::new(Ring::new(
        Vec::leak(slots),
        MOST,
    ))))
}

fn slots(ring: &CarrierRing) -> Vec<[u64; 2]> {
    let mut place = vec![[0; 2]; 4096];
    let copied = ring.ring.copy(0, &mut place);
    place.truncate(copied.count);
    place
}

#[test]
fn one_carrier_writes_a_ring() {
    let ring = ring(64);
    // SAFETY: nothing runs on these carriers but this test.
    unsafe {
        assert!(ring.claim(1, 11).is_some());
        assert!(ring.claim(2, 22).is_none());
        assert!(ring.claim(1, 11).is_some());
    }
    assert_eq!(ring.tid.load(Relaxed), 11);
}

#[test]
fn events_that_follow_fast_share_a_stamp() {
    let ring = ring(4096);
    // SAFETY: this test is the owner.
    let writer = unsafe { ring.claim(1, 11) }.unwrap();
    for _ in 0..1000 {
        writer.push(5, YIELD, 6);
    }
    let slots = slots(ring);
    assert_eq!(slots[0][0] as u8, STATE);
    assert_eq!(slots[0][1], 5);
    assert!(
        slots[1..]
            .iter()
            .all(|slot| slot[0] as u8 == YIELD && slot[1] == 6)
    );
    let stamps: Vec<_> = slots.iter().map(|slot| slot[0] >> 8).collect();
    assert!(stamps.is_sorted());
    // Where the test is slow, or a tick comes, there are more of them; never fewer.
    let mut different = stamps.clone();
    different.dedup();
    assert!(different.len() >= 1000 / 16, "{} stamps", different.len());
}

#[test]
fn a_batch_ends_on_request() {
    let ring = ring(64);
    // SAFETY: this test is the owner.
    let writer = unsafe { ring.claim(1, 11) }.unwrap();
    for _ in 0..20 {
        writer.push(5, YIELD, 6);
        writer.read_clock();
    }
    let stamps: Vec<_> = slots(ring)[1..].iter().map(|slot| slot[0] >> 8).collect();
    assert!(stamps.is_sorted_by(|a, b| a < b), "{stamps:?}");
}

#[test]
fn a_long_name_is_cut() {
    let ring = ring(64);
    // SAFETY: this test is the owner.
    let writer = unsafe { ring.claim(1, 11) }.unwrap();
    let name = "0123456789".repeat(20);
    writer.name(7, &name);
    let slots = slots(ring);
    assert_eq!(slots.len(), MOST);
    assert_eq!(slots[0], [105 << 8 | u64::from(NAME), 7]);
    let texts = slots[1..].iter().flat_map(|slot| {
        assert_eq!(slot[0] as u8, TEXT);
        let [first, second] = slot.map(u64::to_le_bytes);
        first.into_iter().skip(1).chain(second)
    });
    assert_eq!(texts.collect::<Vec<_>>(), name.as_bytes()[..105]);
}

#[test]
fn what_is_overwritten_is_not_copied() {
    let slots = (0..16).map(|_| Slot::new()).collect::<Vec<_>>();
    let ring = Ring::new(Vec::leak(slots), 2);
    for index in 0..100 {
        ring.push(&[[index, 2 * index]]);
    }
    let mut place = [[0; 2]; 64];
    let copied = ring.copy(10, &mut place);
    // Two slots may be about to be written.
    assert_eq!((copied.first, copied.count), (86, 14));
    assert!((86..100).zip(&place).all(|(i, slot)| *slot == [i, 2 * i]));
    assert_eq!(ring.copy(100, &mut place).count, 0);
    assert_eq!(ring.copy(98, &mut place[..1]).count, 1);
}
