//! Thread-locals are per virtual thread, stay where they are, and are destroyed at its end.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::common::{crowd, many, on_virtual, watched};
use pirn::thread;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
    static TEXT: RefCell<String> = RefCell::new(String::from("fresh"));
}

#[watched]
fn each_thread_has_its_own_values() {
    crowd(|i| {
        assert_eq!(NUMBER.get(), 0);
        assert_eq!(TEXT.with_borrow(String::clone), "fresh");
        NUMBER.set(i);
        TEXT.set(format!("thread {i}"));
        for _ in 0..20 {
            thread::yield_now();
            assert_eq!(NUMBER.get(), i);
        }
        thread::sleep(Duration::from_millis(1));
        assert_eq!(TEXT.with_borrow(String::clone), format!("thread {i}"));
    });
}

#[watched]
fn the_address_of_a_thread_local_never_changes() {
    crowd(|_| {
        NUMBER.with(|before| {
            for _ in 0..20 {
                thread::yield_now();
                NUMBER.with(|after| assert!(std::ptr::eq(before, after)));
            }
        });
    });
}

#[watched]
fn live_threads_never_share_an_address() {
    let addresses = Mutex::new(HashSet::new());
    let all_here = std::sync::Barrier::new(crate::common::crowd_size());
    crowd(|_| {
        let address = NUMBER.with(|number| std::ptr::from_ref(number) as usize);
        assert!(addresses.lock().unwrap().insert(address));
        all_here.wait();
    });
}

#[watched]
fn a_borrow_may_last_across_switches() {
    crowd(|i| {
        TEXT.with_borrow_mut(|text| {
            text.clear();
            for _ in 0..5 {
                text.push('x');
                thread::yield_now();
            }
            assert_eq!(text.len(), 5, "thread {i}");
        });
    });
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

thread_local! {
    static COUNTED: RefCell<Option<Counted>> = const { RefCell::new(None) };
}

#[watched]
fn destructors_have_run_when_join_returns() {
    let drops = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..many())
        .map(|_| {
            let value = Counted(Arc::clone(&drops));
            thread::spawn(move || {
                COUNTED.set(Some(value));
                thread::yield_now();
            })
        })
        .collect();
    for (done, handle) in handles.into_iter().enumerate() {
        handle.join().unwrap();
        assert!(drops.load(SeqCst) > done);
    }
    assert_eq!(drops.load(SeqCst), many());
}

#[watched]
fn destructors_run_after_a_panic() {
    let drops = Arc::new(AtomicUsize::new(0));
    let value = Counted(Arc::clone(&drops));
    let result = thread::spawn(move || {
        COUNTED.set(Some(value));
        panic!("snap");
    });
    assert!(result.join().is_err());
    assert_eq!(drops.load(SeqCst), 1);
}

/// Blocks in its destructor and looks at its surroundings there.
struct Blocking(mpsc::Sender<(bool, String)>);

impl Drop for Blocking {
    fn drop(&mut self) {
        let before = std::thread::current().id();
        thread::sleep(Duration::from_millis(1));
        thread::yield_now();
        let same = std::thread::current().id() == before;
        let text = TEXT
            .try_with(|text| text.borrow().clone())
            .unwrap_or_else(|_| String::from("gone"));
        self.0.send((same, text)).unwrap();
    }
}

thread_local! {
    static BLOCKING: RefCell<Option<Blocking>> = const { RefCell::new(None) };
}

#[watched]
fn destructors_may_block() {
    let (sender, seen) = mpsc::channel();
    for i in 0..many() {
        let sender = sender.clone();
        thread::spawn(move || {
            TEXT.set(i.to_string());
            BLOCKING.set(Some(Blocking(sender)));
        });
    }
    drop(sender);
    let seen: Vec<_> = seen.iter().collect();
    assert_eq!(seen.len(), many());
    for (same, text) in seen {
        assert!(same, "the thread changed its identity in a destructor");
        // The order of destruction is not specified; another thread's text would be wrong.
        assert!(text == "gone" || text.parse::<usize>().is_ok(), "{text}");
    }
}

/// Sets another thread-local from its own destructor.
struct Relay(Arc<AtomicUsize>);

impl Drop for Relay {
    fn drop(&mut self) {
        let value = Counted(Arc::clone(&self.0));
        let _ = COUNTED.try_with(|counted| counted.replace(Some(value)));
    }
}

thread_local! {
    static RELAY: RefCell<Option<Relay>> = const { RefCell::new(None) };
}

#[watched]
fn a_destructor_may_make_another_thread_local() {
    let drops = Arc::new(AtomicUsize::new(0));
    let relay = Relay(Arc::clone(&drops));
    thread::spawn(move || RELAY.set(Some(relay)))
        .join()
        .unwrap();
    assert_eq!(drops.load(SeqCst), 1);
}

#[watched]
fn a_thread_that_ends_leaves_nothing_to_the_next() {
    // One after the other, so that they are likely to get the same slot.
    for i in 0..200 {
        on_virtual(move || {
            assert_eq!(NUMBER.replace(i + 1), 0);
            assert_eq!(TEXT.replace(String::from("used")), "fresh");
        });
    }
}
