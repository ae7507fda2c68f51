//! One thread in each kind of wait, and what a walker would note.

mod locks;
mod others;
mod places;
mod stuck;

use crate::thread::{JoinHandle, Thread};
use pirn_dump::Wait;
use pirn_observe::waits::Noted;
use pirn_rt::sched;
use pirn_rt::vthread::record::State;

/// Returns what a thread waits for, once it waits for something that `wanted` accepts.
fn when(thread: &Thread, wanted: impl Fn(&Wait) -> bool) -> Noted {
    let core = thread.as_virtual().expect("a virtual thread");
    loop {
        let note = |slot| sched::inspect(slot, |core, parked| parked.then(|| Noted::of(core)));
        // Before that the thread may be about to get its slot.
        let slot = (core.state() == State::Waiting).then(|| core.slot());
        if let Some(noted) = slot.flatten().and_then(note).flatten()
            && wanted(&noted.plain())
        {
            return noted;
        }
        assert!(!core.has_ended(), "it has not waited");
        std::thread::yield_now();
    }
}

/// The same for a handle.
fn waits<T>(handle: &JoinHandle<T>, wanted: impl Fn(&Wait) -> bool) -> Noted {
    when(handle.thread(), wanted)
}

/// Returns the address of an object.
fn at<T>(object: *const T) -> u64 {
    object.addr() as u64
}
