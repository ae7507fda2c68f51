//! What threads work for, by `thread::annotate`.

use super::Read;
use crate::common::{carriers, watched};
use pirn::thread::{self, annotate};
use pirn_dump::{State, Thread};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

static OVER: AtomicBool = AtomicBool::new(false);

/// Makes dumps until one thread is as `is` says. Returns what it works for.
fn until(is: impl Fn(&Thread) -> bool) -> Vec<String> {
    loop {
        let dump = Read::now().dump;
        if let Some(thread) = dump.threads.into_iter().find(&is) {
            return thread.works_for;
        }
        std::thread::yield_now();
    }
}

#[watched(alone)]
fn names_nest_and_end_with_their_calls_also_by_a_panic() {
    /// How often the thread has come to a place where it parks.
    static PLACE: AtomicU64 = AtomicU64::new(0);
    let stop = || {
        PLACE.fetch_add(1, Relaxed);
        thread::park();
    };
    let thread = thread::spawn(move || {
        stop();
        annotate("orders", || {
            annotate("Buy", stop);
            stop();
            let panics = || annotate("Sell", || std::panic::resume_unwind(Box::new(7)));
            catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
            stop();
        });
        stop();
    });
    let expected: [&[&str]; 5] = [&[], &["orders", "Buy"], &["orders"], &["orders"], &[]];
    for (place, names) in (1..).zip(expected) {
        let works_for = until(|it| PLACE.load(Relaxed) == place && it.state == State::Waiting);
        assert_eq!(works_for, names, "at the place {place}");
        thread.thread().unpark();
    }
    thread.join().unwrap();
}

#[watched(alone)]
fn a_thread_that_computes_is_asked_as_well() {
    let compute = || {
        while !OVER.load(Relaxed) {
            std::hint::spin_loop();
        }
    };
    let thread = thread::spawn(move || annotate("primes", compute));
    let works_for = until(|it| it.state == State::Running && !it.works_for.is_empty());
    assert_eq!(works_for, ["primes"]);
    OVER.store(true, Relaxed);
    thread.join().unwrap();
}

#[watched(alone)]
fn many_and_long_names_are_cut() {
    fn nest(depth: usize) {
        match depth {
            0 => thread::park(),
            _ => annotate(&"é".repeat(100 * depth), || nest(depth - 1)),
        }
    }
    // The text begins in the middle of a word, so that a letter is at the place of the cut.
    let thread = thread::spawn(|| annotate("outermost", || annotate("x", || nest(8))));
    let works_for = until(|it| it.state == State::Waiting);
    let letters: Vec<usize> = works_for.iter().map(|name| name.chars().count()).collect();
    assert_eq!(letters, [128, 128, 128, 128, 128, 128, 128, 100]);
    thread.thread().unpark();
    thread.join().unwrap();
}

/// The threads run, park, and are in queues. Each gives names of its own, and changes their memory
/// when they are over.
#[watched(alone)]
fn no_name_is_seen_before_or_after_its_call() {
    let threads: Vec<_> = (0..4 * carriers())
        .map(|number| {
            let thread = thread::Builder::new().name(format!("{number}"));
            let work = move || {
                let own = format!("for {number}");
                while !OVER.load(Relaxed) {
                    let mut name = own.clone();
                    annotate(&name, || annotate(&name, thread::yield_now));
                    // SAFETY: still UTF-8.
                    unsafe { name.as_bytes_mut() }.fill(b'!');
                    std::hint::black_box(&name);
                }
            };
            thread.spawn(work).unwrap()
        })
        .collect();
    let mut seen = 0;
    while seen < 200 {
        for thread in Read::now().dump.threads {
            let own = String::from_utf8(thread.name.unwrap()).unwrap();
            let expected = vec![format!("for {own}"); thread.works_for.len()];
            assert_eq!(thread.works_for, expected);
            seen += expected.len();
        }
    }
    OVER.store(true, Relaxed);
    threads.into_iter().for_each(|it| it.join().unwrap());
}
