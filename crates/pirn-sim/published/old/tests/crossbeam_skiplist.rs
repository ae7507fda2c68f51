//! A key is not there for a moment while its value is replaced: crossbeam #1023. Each
//! release up to 0.1.3 has it.

use crossbeam_skiplist::SkipMap;
use pirn_sim::Sim;
use std::sync::Arc;
use std::thread;

#[test]
fn a_key_whose_value_is_replaced_is_there() {
    if published::is_mended() {
        return; // No release is.
    }
    published::is_found("crossbeam-skiplist 0.1.3, #1023", Sim::new(), || {
        let map = Arc::new(SkipMap::new());
        map.insert(1, 1);
        let other = Arc::clone(&map);
        let thread = thread::spawn(move || {
            other.insert(1, 2);
        });
        assert!(map.get(&1).is_some());
        thread.join().unwrap();
    });
}
