//! Dumps of all virtual threads. Each test has a process of its own, and so knows all threads.

mod libraries;
mod running;
mod stacks;
mod truth;
mod works_for;

use std::cell::RefCell;

use pirn_dump::{Dump, End, Names, State, Symbols, Thread};

/// A dump with all threads, read as a client would read it, and the names in it.
struct Read {
    dump: Dump,
    names: Names,
}

thread_local! {
    /// The names in the program's file, which takes a while to read.
    static SYMBOLS: RefCell<Symbols> = RefCell::new(Symbols::of_self());
}

impl Read {
    /// Makes a dump in this process.
    fn now() -> Read {
        let mut bytes = Vec::new();
        let dump = pirn::dump::Options::new().list(usize::MAX).take();
        dump.write_to(&mut bytes).unwrap();
        let dump = Dump::read_from(&bytes[..]).unwrap();
        Read {
            names: SYMBOLS.with_borrow_mut(|symbols| symbols.names(&dump)),
            dump,
        }
    }

    /// Returns the names of the functions that a thread is in, innermost first, if its whole stack
    /// was read.
    fn functions(&self, thread: &Thread) -> Option<Vec<String>> {
        let stack = &self.dump.stacks[thread.stack? as usize];
        let frames = self.names.all(stack).into_iter();
        (stack.end == End::Complete).then(|| frames.map(|frame| frame.name()).collect())
    }

    /// Returns the thread with this name.
    fn named(&self, name: &str) -> &Thread {
        let mut threads = self.dump.threads.iter();
        let named = threads.find(|thread| thread.name.as_deref() == Some(name.as_bytes()));
        named.unwrap_or_else(|| panic!("no thread {name} in {:?}", self.dump.threads))
    }

    /// Makes dumps until in one of them as many threads wait.
    fn when_waiting(count: usize) -> Read {
        loop {
            let read = Read::now();
            if read.dump.totals.by_state[State::Waiting as usize] == count as u64 {
                return read;
            }
            std::thread::yield_now();
        }
    }
}

/// Calls `f` in as many frames of this function.
#[inline(never)]
fn descend(depth: usize, f: &mut dyn FnMut()) {
    match depth {
        0 => f(),
        _ => descend(depth - 1, f),
    }
    std::hint::black_box(depth); // So this is no tail call.
}

/// Returns how often [`descend`] is in a list of functions.
fn depth_in(functions: &[String]) -> usize {
    let calls = functions.iter().filter(|name| name.contains("descend"));
    calls.count() - 1
}
