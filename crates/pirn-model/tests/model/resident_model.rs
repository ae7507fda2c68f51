//! The entry of a slot: threads that live in it one after the other, and those who look at them.

use loom::sync::Arc;
use loom::thread;

use crate::state::TableEntry;
use crate::{Word, check, sys};

/// A slot, and the records of the threads that live in it.
struct Slot {
    entry: TableEntry<Word>,
    records: [Word; 2],
}

impl Slot {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            entry: TableEntry::default(),
            records: [Word::new(), Word::new()],
        })
    }

    /// Lives the lives of the first `count` threads.
    fn live(&self, count: usize) {
        for record in &self.records[..count] {
            record.write(1);
            // SAFETY: the record stays; and the entry is empty, since the last one has left.
            unsafe { self.entry.enter(record) };
            self.entry.leave(sys::back_off);
            record.write(2); // It is freed.
        }
    }

    /// Looks once, at a record that must be complete, and not freed.
    fn look(&self) {
        if let Ok(Some(value)) = self.entry.look(Word::read) {
            assert_eq!(value, 1);
        }
    }
}

fn check_lookers<const LOOKERS: usize>(threads: usize) {
    check(3, move || {
        let slot = Slot::new();
        let lookers = [(); LOOKERS].map(|()| {
            let slot = slot.clone();
            thread::spawn(move || slot.look())
        });
        slot.live(threads);
        for looker in lookers {
            looker.join().unwrap();
        }
        assert!(matches!(slot.entry.look(|_| ()), Ok(None)));
    });
}

#[test]
fn a_record_stays_while_it_is_looked_at() {
    check_lookers::<1>(2);
}

#[test]
fn one_looks_at_a_time() {
    check_lookers::<2>(1);
}

/// A look finds the thread, unless another look is under way.
#[test]
fn a_thread_is_found() {
    check(3, || {
        let slot = Slot::new();
        slot.records[0].write(1);
        // SAFETY: the record stays, and the entry is empty.
        unsafe { slot.entry.enter(&slot.records[0]) };
        let other = slot.clone();
        let other = thread::spawn(move || other.entry.look(Word::read).is_ok());
        let found = slot.entry.look(Word::read).is_ok();
        assert!(other.join().unwrap() || found);
        assert_eq!(slot.entry.look(Word::read).unwrap(), Some(1));
        slot.entry.leave(sys::back_off);
    });
}
