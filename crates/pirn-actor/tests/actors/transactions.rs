//! Changes that are made in full, or not at all.

use crate::common::{Gate, watched};
use pirn::thread::{self, ThreadId};
use pirn_actor::{self as actor, AskError, Exit};
use std::sync::{Arc, Mutex};

#[watched]
fn a_transaction_that_succeeds_changes_the_state() {
    let list = actor::spawn(vec![1]);
    let length = list.transaction(|list| {
        list.push(2);
        Ok::<_, String>(list.len())
    });
    assert_eq!(length, Ok(Ok(2)));
    assert_eq!(list.run(|list| list.clone()), Ok(vec![1, 2]));
}

#[watched]
fn an_error_puts_the_state_back_as_it_was_at_the_start_in_the_actor() {
    let gate = Gate::new();
    let blocked = gate.clone();
    let list = actor::spawn(vec![1]);
    list.run_detached(move |list: &mut Vec<u32>| {
        blocked.wait();
        list.push(2); // after the call of the transaction, before its start
    })
    .unwrap();
    let undone = {
        let list = list.clone();
        thread::spawn(move || {
            list.transaction(|list| {
                list.clear();
                Err::<(), _>("no")
            })
        })
    };
    crate::common::until(|| list.len() == 1);
    gate.open();
    assert_eq!(undone.join().unwrap(), Ok(Err("no")));
    assert_eq!(list.run(|list| list.clone()), Ok(vec![1, 2]));
}

#[watched]
fn a_panic_puts_the_state_back_and_the_actor_goes_on() {
    let list = actor::spawn(vec![1]);
    let failed = list.transaction(|list| -> Result<(), ()> {
        list.clear();
        panic!("half way")
    });
    let Err(AskError::Failed(failure)) = failed else {
        panic!("{failed:?}")
    };
    assert!(failure.to_string().contains("half way"), "{failure}");
    assert_eq!(list.exit(), None);
    assert_eq!(list.run(|list| list.clone()), Ok(vec![1]));
}

/// Notes the threads on which it is cloned.
struct Noted(Arc<Mutex<Vec<ThreadId>>>);

impl Clone for Noted {
    fn clone(&self) -> Noted {
        self.0.lock().unwrap().push(thread::current().id());
        Noted(Arc::clone(&self.0))
    }
}

#[watched]
fn the_state_is_cloned_once_and_in_the_actor() {
    let clones = Arc::new(Mutex::new(Vec::new()));
    let noted = actor::spawn(Noted(Arc::clone(&clones)));
    let ran_on = noted.transaction(|_| Ok::<_, ()>(thread::current().id()));
    assert_eq!(*clones.lock().unwrap(), [ran_on.unwrap().unwrap()]);
    assert_ne!(clones.lock().unwrap()[0], thread::current().id());
}

#[derive(Clone)]
struct Touchy {
    changed: bool,
}

impl Drop for Touchy {
    fn drop(&mut self) {
        assert!(
            !self.changed || thread::panicking(),
            "dropped while changed"
        );
    }
}

#[watched]
fn a_changed_state_that_panics_when_it_is_dropped_is_put_back_all_the_same() {
    let touchy = actor::spawn(Touchy { changed: false });
    let undone = touchy.transaction(|touchy| {
        touchy.changed = true;
        Err::<(), _>("no")
    });
    assert_eq!(undone, Ok(Err("no")));
    assert_eq!(touchy.run(|touchy| touchy.changed), Ok(false));
    touchy.close();
    assert_eq!(touchy.join(), Exit::Closed);
}

#[derive(Debug)]
struct Uncloned(u32);

impl Clone for Uncloned {
    fn clone(&self) -> Uncloned {
        panic!("cannot be cloned")
    }
}

#[watched]
fn a_clone_that_panics_is_a_failure_of_the_transaction_only() {
    let uncloned = actor::spawn(Uncloned(7));
    let failed = uncloned.transaction(|uncloned| {
        uncloned.0 = 8;
        Ok::<_, ()>(())
    });
    assert!(matches!(failed, Err(AskError::Failed(_))), "{failed:?}");
    assert_eq!(uncloned.run(|uncloned| uncloned.0), Ok(7));
}
