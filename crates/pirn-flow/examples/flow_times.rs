//! Prints what an item of a generator costs, in ns: `cargo run --release --example flow_times`.

use pirn_flow::generator::{Out, generate_parallel};
use std::time::Instant;

const ITEMS: u64 = 1_000_000;
const AHEAD: usize = 100;

/// Takes all items, on a virtual thread, and prints the time per item of the best of five runs.
fn time(what: &str, items: impl Fn() -> u64 + Send + 'static) {
    let run = move || {
        let start = Instant::now();
        assert_eq!(items(), ITEMS);
        start.elapsed().as_nanos() as u64 / ITEMS
    };
    let best = pirn::thread::spawn(move || (0..5).map(|_| run()).min());
    println!("{what}: {} ns per item", best.join().unwrap().unwrap());
}

fn main() {
    for producers in [1, 8] {
        time(&format!("{producers} producers"), move || {
            let producers = (0..producers).map(|_| {
                move |out: &mut Out<u64>| (0..ITEMS / producers).try_for_each(|n| out.give(n))
            });
            let all = generate_parallel(AHEAD, producers);
            all.map(Result::unwrap).filter(|n| *n < ITEMS).count() as u64
        });
    }
}
