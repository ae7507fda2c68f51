//! `tracing` with 100,000 threads alive at once, each in spans of its own: `cargo run --release -p
//! examples --example tracing [THREADS]`.
//!
//! The registry of `tracing-subscriber` panics in threads beyond 4,096. The subscriber here,
//! [`spans`], keeps the stack of entered spans in a thread-local, which each virtual thread has for
//! itself, wherever it runs; so it has no limit.
mod spans;

use pirn::thread;
use spans::Spans;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use tracing::{info, info_span};

fn main() -> io::Result<()> {
    let count = std::env::args()
        .nth(1)
        .map_or(Ok(100_000), |text| text.parse());
    let count = count.map_err(io::Error::other)?;
    let (lines, wrong) = serve(count)?;
    println!("{lines} lines of {count} threads, {wrong} of them with another thread's spans");
    Ok(())
}

/// Serves requests, each on a thread of its own, all at once. Returns the number of lines written,
/// and of those that name another request than the thread's.
fn serve(count: usize) -> io::Result<(usize, usize)> {
    let tally = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let [lines, wrong] = [0, 1].map(|index| {
        let tally = Arc::clone(&tally);
        move |one: usize| tally[index].fetch_add(one, Ordering::Relaxed) + one
    });
    let subscriber = Spans::new(move |line| {
        if lines(1) <= 4 {
            println!("{line}");
        }
        wrong(usize::from(!is_right(line)));
    });
    tracing::subscriber::set_global_default(subscriber).map_err(io::Error::other)?;
    let all_are_here = Arc::new(Barrier::new(count));
    let requests = (0..count).map(|id| {
        let all_are_here = Arc::clone(&all_are_here);
        let builder = thread::Builder::new().stack_size(256 << 10);
        builder.spawn(move || answer(id, &all_are_here))
    });
    for request in requests.collect::<io::Result<Vec<_>>>()? {
        let panicked = |_| io::Error::other("a request panicked");
        request.join().map_err(panicked)?;
    }
    Ok((
        tally[0].load(Ordering::Relaxed),
        tally[1].load(Ordering::Relaxed),
    ))
}

/// Returns whether an answer names the request whose span it is in.
fn is_right(line: &str) -> bool {
    let number = |before: &str| {
        let (_, rest) = line.split_once(before)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()
    };
    line.starts_with("INFO request{id=")
        && line.contains("}: lookup{table=\"users\"}: answered for=")
        && number("request{id=") == number("for=")
}

/// Answers one request. It waits inside its spans, and may go on on another carrier.
fn answer(id: usize, all_are_here: &Barrier) {
    let _request = info_span!("request", id).entered();
    all_are_here.wait();
    let _lookup = info_span!("lookup", table = "users").entered();
    thread::yield_now();
    info!(for = id, "answered");
}

#[cfg(test)]
mod tests {
    /// More than `tracing-subscriber`'s registry has places for.
    #[test]
    fn each_of_100_000_threads_is_in_its_own_spans() {
        assert_eq!(super::serve(100_000).unwrap(), (100_000, 0));
    }

    #[test]
    fn lines_with_the_spans_of_others_are_found() {
        let line =
            |id| format!("INFO request{{id={id}}}: lookup{{table=\"users\"}}: answered for=7");
        assert!(super::is_right(&line(7)));
        assert!(!super::is_right(&line(8)));
        assert!(!super::is_right("INFO answered for=7"));
    }
}
