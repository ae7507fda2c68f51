use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

#[test]
fn no_more_enter_than_there_is_room_for() {
    let ramp = Ramp::new(3);
    let inside = Arc::new(AtomicUsize::new(0));
    let users: Vec<_> = (0..100)
        .map(|_| {
            let entering = ramp.enter();
            let inside = Arc::clone(&inside);
            thread::spawn(move || {
                let others = inside.fetch_add(1, Ordering::SeqCst);
                assert!(others < 3, "{others} others were inside");
                thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(entering);
            })
        })
        .collect();
    ramp.wait_until_empty();
    assert_eq!(inside.load(Ordering::SeqCst), 0);
    for user in users {
        user.join().unwrap();
    }
}

#[test]
fn a_panic_leaves_the_ramp_too() {
    let ramp = Ramp::new(1);
    let entering = ramp.enter();
    let user = thread::spawn(move || {
        let _entering = entering;
        panic!("(this panic is part of a test)");
    });
    assert!(user.join().is_err());
    ramp.wait_until_empty();
}
