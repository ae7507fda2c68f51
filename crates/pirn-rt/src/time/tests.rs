use super::*;

#[test]
fn a_timeout_of_centuries_is_none() {
    assert!(Deadline::after(Duration::MAX).is_never());
    assert!(Deadline::after_nanos(u64::MAX).is_never());
    assert!(Deadline::after_timeout(None).is_never());
    assert!(!Deadline::after(Duration::from_secs(3600)).is_never());
}

#[test]
fn what_has_passed_is_not_in_the_future() {
    assert!(Deadline::PASSED.has_passed());
    assert!(Deadline::after(Duration::ZERO).has_passed());
    assert!(Deadline::at(Instant::now()).has_passed());
    assert!(Deadline::from_nanos(now()).has_passed());
    assert!(!Deadline::after(Duration::from_secs(3600)).has_passed());
    assert!(!Deadline::NEVER.has_passed());
}

#[test]
fn earlier_is_less() {
    let soon = Deadline::after(Duration::from_secs(1));
    assert_eq!(Deadline::NEVER.min(soon), soon);
    assert!(Deadline::PASSED < soon && soon < Deadline::NEVER);
    assert!(soon.left() <= 1_000_000_000 && Deadline::PASSED.left() == 0);
}

#[test]
fn the_kernel_gets_no_time_for_never() {
    assert!(Deadline::NEVER.timespec().is_none());
    let time = Deadline::from_nanos(1_500_000_000).timespec().unwrap();
    assert_eq!((time.tv_sec, time.tv_nsec), (1, 500_000_000));
}

#[test]
fn an_instant_is_the_same_point() {
    let later = Instant::now() + Duration::from_secs(60);
    let again = Deadline::at(later).instant();
    assert!(again.max(later) - again.min(later) < Duration::from_secs(1));
    let passed = Deadline::from_nanos(now() - 5_000_000_000).instant();
    assert!(passed < Instant::now() - Duration::from_secs(4));
}
