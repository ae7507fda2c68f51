use super::{Awaited, Awaits, Kind};
use crate::time::Deadline;

#[test]
fn a_word_says_what_was_put_in() {
    for kind in Kind::ALL {
        let awaited = Awaited::new(kind, 0x7fff_ffff_ffff);
        assert_eq!(awaited.kind(), kind);
        assert_eq!(awaited.argument(), 0x7fff_ffff_ffff);
        assert_eq!(awaited.looking().kind(), kind);
        assert_eq!(awaited.looking().argument(), 0x7fff_ffff_ffff);
    }
    assert_eq!(Awaited::descriptor(Kind::Read, i32::MAX).number(), i32::MAX);
    assert_eq!(Awaited::child(-1).number(), -1);
    assert_eq!(Awaited::call(c"fsync").name(), Some(c"fsync"));
    assert_eq!(Awaited::new(Kind::Sleep, 0).name(), None);
}

#[test]
fn the_numbers_are_those_of_the_list() {
    for (number, kind) in Kind::ALL.into_iter().enumerate() {
        assert_eq!(kind as usize, number);
    }
}

#[test]
fn a_deadline_belongs_to_the_wait_for_which_it_was_set() {
    let awaits = Awaits::new();
    assert_eq!(awaits.what().kind(), Kind::Nothing);
    awaits.begin(Awaited::new(Kind::Park, 0));
    assert_eq!(awaits.deadline(), None);
    awaits.until(Deadline::from_nanos(7));
    assert_eq!(awaits.deadline(), Some(Deadline::from_nanos(7)));
    assert_eq!(awaits.what().kind(), Kind::Park);
    awaits.begin(Awaited::at(Kind::Futex, 0x1000));
    assert_eq!(awaits.deadline(), None);
    awaits.until(Deadline::from_nanos(8));
    awaits.moved(0x2000);
    assert_eq!(awaits.what().argument(), 0x2000);
    assert_eq!(awaits.what().kind(), Kind::Futex);
    assert_eq!(awaits.deadline(), Some(Deadline::from_nanos(8)));
}

#[test]
fn times_at_which_the_runtime_looks_again_are_no_deadlines() {
    let awaits = Awaits::new();
    awaits.begin(Awaited::descriptor(Kind::FileLock, 3).looking());
    awaits.until(Deadline::from_nanos(7));
    assert_eq!(awaits.deadline(), None);
}
