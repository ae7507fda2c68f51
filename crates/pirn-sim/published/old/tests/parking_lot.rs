//! `RwLock::try_write_for` leaves a lock that no thread can take: parking_lot #465,
//! mended in 0.12.4.

use parking_lot::RwLock;
use pirn_sim::Sim;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const MOMENT: Duration = Duration::from_millis(1);

#[test]
fn a_lock_is_free_when_all_have_let_go() {
    published::is_found("parking_lot 0.12.3, #465", Sim::new(), || {
        let lock = Arc::new(RwLock::new(0));
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || {
                    for _ in 0..3 {
                        if n < 2 {
                            let guard = lock.read();
                            thread::sleep(MOMENT);
                            drop(guard);
                        } else if let Some(mut guard) = lock.try_write_for(MOMENT) {
                            *guard += 1;
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|it| it.join().unwrap());
        assert!(lock.try_write().is_some(), "{lock:?}");
    });
}
