use super::*;

#[test]
fn steps_come_close_to_the_budget_and_end() {
    let driver = MostParked { budget: 1_000_000 };
    let mut count = 10;
    let mut steps = 0;
    while let more @ 1.. = driver.more(count, count * 100) {
        count += more;
        steps += 1;
    }
    assert!(
        (9_700..=10_000).contains(&count) && steps < 8,
        "{count} {steps}"
    );
    assert_eq!(driver.more(10, 2_000_000), 0);
}
