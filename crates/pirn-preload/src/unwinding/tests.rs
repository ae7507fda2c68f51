use super::*;
use std::panic;

/// This program unwinds by the functions above, as the library does.
#[test]
fn a_panic_is_caught_after_its_destructors() {
    struct Dropped<'a>(&'a mut bool);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            *self.0 = true;
        }
    }
    let mut dropped = false;
    let caught = panic::catch_unwind(panic::AssertUnwindSafe(|| {
        let _dropped = Dropped(&mut dropped);
        panic::resume_unwind(Box::new(7));
    }));
    assert_eq!(caught.unwrap_err().downcast_ref::<i32>(), Some(&7));
    assert!(dropped);
    let raise = NAMES
        .iter()
        .position(|name| *name == c"_Unwind_RaiseException");
    let found = raise.map(|index| FOUND[index].load(Relaxed));
    assert!(found.is_some_and(|address| !address.is_null()));
}
