//! Every receive and send, with each of its flags and options, on each kind of descriptor, with
//! bytes that come in pieces, ends, resets and signals: a virtual thread gets the same result and
//! the same error as a platform thread, and leaves the same behind.

#[path = "../common/mod.rs"]
mod common;

mod cases;
mod kinds;
mod others;
mod receives;
mod script;
mod sends;

use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::common::{report, sys, watched};

fn on_platform(call: Box<dyn FnOnce() + Send>) {
    std::thread::spawn(call);
}

fn on_virtual(call: Box<dyn FnOnce() + Send>) {
    pirn::thread::spawn(call);
}

extern "C" fn ignore(_: libc::c_int) {}

/// `CASES` and `SEED` choose others.
#[watched]
fn transfers_are_the_kernels() {
    sys::raise_file_limit();
    sys::on_signal(libc::SIGUSR1, libc::SA_RESTART, ignore);
    sys::on_signal(libc::SIGUSR2, 0, ignore);
    // SAFETY: no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let number = |name: &str, otherwise| env::var(name).map_or(otherwise, |it| it.parse().unwrap());
    let cases = cases::some(number("CASES", 3000), number("SEED", 1) as u64);
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(vec![]));
    let look = || {
        while let Some(case) = cases.get(next.fetch_add(1, SeqCst)) {
            // A busy machine may hold a caller up until its peer has acted. A defect shows at each
            // attempt, however long the peer waits for the caller.
            let mut last = (vec![], vec![]);
            let differs = (0..8).all(|attempt| {
                let quiet = script::QUIET * (1 << attempt);
                last = (
                    case.outcome(quiet, on_platform),
                    case.outcome(quiet, on_virtual),
                );
                last.0 != last.1 && !script::hangs(&last.0)
            });
            if differs {
                report(&format!(
                    "{case:?}\n  platform {:?}\n  virtual {:?}",
                    last.0, last.1
                ));
                wrong.lock().unwrap().push(case);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(look);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}", wrong.len(), cases.len());
}
