//! A pipeline with back-pressure: a source that is fast, and a store that is slow. Each mailbox has
//! room for a few messages, so the source waits, and memory is bounded, without a line for it.
//!
//! `cargo run -p pirn-actor --example back_pressure [LINES]`

use pirn::thread;
use pirn_actor::{Builder, Exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The number of messages for which each mailbox has room.
const ROOM: usize = 4;

#[pirn::main]
fn main() {
    let lines = std::env::args()
        .nth(1)
        .map(|text| text.parse().expect("a number"));
    let lines: usize = lines.unwrap_or(1000);
    let stored = Arc::new(AtomicUsize::new(0));
    let stage = |name: &str| Builder::new().name(name).capacity(ROOM);

    let parse = stage("parse").function(|line: String| -> Vec<u64> {
        let words = line.split(' ').map(str::parse);
        words.map(|word| word.unwrap_or(0)).collect()
    });
    let add = stage("add").function(|numbers: Vec<u64>| numbers.iter().sum());
    let (count, mut total) = (Arc::clone(&stored), 0);
    let store = stage("store").function(move |sum: u64| {
        thread::sleep(Duration::from_micros(200)); // a disk, a database
        count.fetch_add(1, Ordering::Relaxed);
        total += sum;
        total
    });
    let line = parse.then(&add).then(&store);

    let mut most = 0;
    for n in 1..=lines {
        // Waits until there is room, as soon as all three stages are full.
        line.send(format!("{n} {n}"))
            .expect("the stages do not end");
        most = most.max(n - stored.load(Ordering::Relaxed));
    }
    let total = line.ask("0".to_string()).expect("they do not fail");
    line.close();
    assert_eq!(line.join(), Exit::Closed);
    println!("{lines} lines, total {total}");
    println!("at most {most} on the way; without back-pressure up to {lines}");
    // Each stage has what it handles, and its mailbox; the last line is on its way into the first.
    assert!(most <= 3 * (ROOM + 1) + 1);
}
