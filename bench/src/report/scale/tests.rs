use super::*;

const ROOM: Room = Room {
    pixels: 300,
    of_label: |label| 8 * label.len() as i32 + 10,
};

fn labels(scale: &Scale) -> Vec<String> {
    scale.ticks.iter().map(|&tick| label(tick)).collect()
}

#[test]
fn values_far_apart_and_only_they_have_a_logarithmic_axis() {
    let logarithmic = |values: &[f64], marks| Scale::of(values, marks, &ROOM).logarithmic;
    assert!(!logarithmic(&[1.0, 30.0], Marks::Bars));
    assert!(logarithmic(&[1.0, 31.0], Marks::Bars));
    assert!(
        logarithmic(&[0.0, 1.0, 31.0], Marks::Bars),
        "a bar may have no length"
    );
    assert!(
        !logarithmic(&[0.0, 1.0, 31.0], Marks::Points),
        "a point at 0 must have a place"
    );
    assert!(!logarithmic(&[0.0, 0.0], Marks::Bars));
    assert!(!logarithmic(&[], Marks::Points));
}

#[test]
fn labels_of_ticks_do_not_touch_and_are_round() {
    assert_eq!(
        labels(&Scale::of(&[470.0], Marks::Bars, &ROOM)),
        ["0", "100", "200", "300", "400"]
    );
    let wide = Scale::of(&[3.0, 4_000_000.0], Marks::Bars, &ROOM);
    assert_eq!(labels(&wide), ["1", "100", "10,000", "1,000,000"]);
    let small = Scale::of(&[0.0004], Marks::Bars, &ROOM);
    assert_eq!(
        labels(&small),
        ["0", "0.0001", "0.0002", "0.0003", "0.0004"]
    );
    assert_eq!(
        labels(&Scale::at(&[1.0, 2.0, 1e6])),
        ["1", "2", "1,000,000"]
    );
}

#[test]
fn a_bar_on_a_logarithmic_axis_always_has_a_length() {
    let scale = Scale::of(&[10.0, 10_000.0], Marks::Bars, &ROOM);
    assert_eq!(scale.range.start, 1.0);
    assert!(scale.map(&10.0, (0, 300)) > scale.map(&1.0, (0, 300)));
    assert_eq!(scale.map(&0.0, (0, 300)), 0, "0 is at the start");
}

#[test]
fn points_lie_between_round_ends() {
    let scale = Scale::of(&[12.0, 4_500.0], Marks::Points, &ROOM);
    assert_eq!(scale.range, 10.0..5_000.0);
}
