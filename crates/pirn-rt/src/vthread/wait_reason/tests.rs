use super::{Kind, WaitInfo, WaitReason};
use crate::time::Deadline;

#[test]
fn a_word_says_what_was_put_in() {
    for kind in Kind::ALL {
        let reason = WaitReason::new(kind, 0x7fff_ffff_ffff);
        assert_eq!(reason.kind(), kind);
        assert_eq!(reason.argument(), 0x7fff_ffff_ffff);
        assert_eq!(reason.looking().kind(), kind);
        assert_eq!(reason.looking().argument(), 0x7fff_ffff_ffff);
    }
    assert_eq!(
        WaitReason::descriptor(Kind::Read, i32::MAX).number(),
        i32::MAX
    );
    assert_eq!(WaitReason::child(-1).number(), -1);
    assert_eq!(WaitReason::call(c"fsync").name(), Some(c"fsync"));
    assert_eq!(WaitReason::new(Kind::Sleep, 0).name(), None);
}

#[test]
fn the_numbers_are_those_of_the_list() {
    for (number, kind) in Kind::ALL.into_iter().enumerate() {
        assert_eq!(kind as usize, number);
    }
}

#[test]
fn a_deadline_belongs_to_the_wait_for_which_it_was_set() {
    let wait_info = WaitInfo::new();
    assert_eq!(wait_info.what().kind(), Kind::Nothing);
    wait_info.begin(WaitReason::new(Kind::Park, 0));
    assert_eq!(wait_info.deadline(), None);
    wait_info.until(Deadline::from_nanos(7));
    assert_eq!(wait_info.deadline(), Some(Deadline::from_nanos(7)));
    assert_eq!(wait_info.what().kind(), Kind::Park);
    wait_info.begin(WaitReason::at(Kind::Futex, 0x1000));
    assert_eq!(wait_info.deadline(), None);
    wait_info.until(Deadline::from_nanos(8));
    wait_info.moved(0x2000);
    assert_eq!(wait_info.what().argument(), 0x2000);
    assert_eq!(wait_info.what().kind(), Kind::Futex);
    assert_eq!(wait_info.deadline(), Some(Deadline::from_nanos(8)));
}

#[test]
fn times_at_which_the_runtime_looks_again_are_no_deadlines() {
    let wait_info = WaitInfo::new();
    wait_info.begin(WaitReason::descriptor(Kind::FileLock, 3).looking());
    wait_info.until(Deadline::from_nanos(7));
    assert_eq!(wait_info.deadline(), None);
}
