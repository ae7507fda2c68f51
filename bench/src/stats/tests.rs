use super::*;

#[test]
fn the_median_is_the_middle_and_the_ends_are_the_ends() {
    let of = |values: &[f64]| {
        let Spread { median, min, max } = spread(values);
        (median, min, max)
    };
    assert_eq!(of(&[3.0, -1.0, 2.0]), (2.0, -1.0, 3.0));
    assert_eq!(of(&[4.0, 1.0, 3.0, 2.0]), (2.5, 1.0, 4.0));
    assert_eq!(of(&[7.0]), (7.0, 7.0, 7.0));
    assert!(spread(&[]).median.is_nan());
}
