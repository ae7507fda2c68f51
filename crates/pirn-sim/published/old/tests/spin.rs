//! `Once::try_call_once` returns what was never made: RUSTSEC-2023-0031, mended in spin 0.9.8.

use pirn_sim::Sim;
use std::sync::Arc;
use std::thread;

#[test]
fn a_value_is_the_one_that_was_made() {
    published::is_found("spin 0.9.7, RUSTSEC-2023-0031", Sim::new(), || {
        let once = Arc::new(spin::Once::<u32>::new());
        let threads: Vec<_> = [Err(()), Ok(7)]
            .into_iter()
            .map(|made| {
                let once = Arc::clone(&once);
                thread::spawn(move || once.try_call_once(|| made).copied())
            })
            .collect();
        for thread in threads {
            if let Ok(value) = thread.join().unwrap() {
                assert_eq!(value, 7);
            }
        }
    });
}
