use super::*;
use std::panic::catch_unwind;

thread_local! {
    static NUMBER: Cell<u32> = const { Cell::new(1) };
}

#[test]
fn the_former_value_comes_back_also_after_a_panic() {
    let inner = with(&NUMBER, 2, || {
        with(&NUMBER, 3, || NUMBER.get()) + NUMBER.get()
    });
    assert_eq!((inner, NUMBER.get()), (5, 1));
    catch_unwind(|| with(&NUMBER, 2, || panic!("with another value"))).unwrap_err();
    assert_eq!(NUMBER.get(), 1);
}
