use super::*;

#[test]
fn every_value_is_in_the_bucket_between_its_bounds() {
    let values = (0..3000)
        .chain((8..64).flat_map(|power| {
            let value = 1u64 << power;
            [
                value - 1,
                value,
                value + 1,
                value + value / 4,
                value + value / 3,
            ]
        }))
        .chain([u64::MAX]);
    for value in values {
        let bucket = bucket_of(value);
        assert!(value <= upper_bound(bucket), "{value} in {bucket}");
        assert!(
            bucket == 0 || value > upper_bound(bucket - 1),
            "{value} in {bucket}"
        );
    }
}

#[test]
fn bounds_grow_by_a_quarter_at_most() {
    for bucket in 1..BUCKETS - 1 {
        let (lower, upper) = (upper_bound(bucket - 1), upper_bound(bucket));
        assert!(lower < upper && upper - lower <= lower / 4, "{bucket}");
    }
    assert_eq!(upper_bound(BUCKETS - 1), u64::MAX);
}

#[test]
fn histograms_add_up() {
    let (one, other) = (Latencies::default(), Latencies::default());
    for nanos in [1, 256, 257, 1_000_000, u64::MAX / 2] {
        one.add(nanos);
        other.add_shared(nanos / 2);
    }
    let mut counts = [0; BUCKETS];
    let sum = one.add_to(&mut counts) + other.add_to(&mut counts);
    assert_eq!(counts.iter().sum::<u64>(), 10);
    assert_eq!(counts[0], 5);
    assert_eq!(counts[BUCKETS - 1], 2);
    assert!(sum > u64::MAX / 2);
}
