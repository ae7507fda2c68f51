//! What works ahead, in parallel or in time leaves no thread behind. Alone in its process, so that
//! it can count all virtual threads.

#[path = "actors/common.rs"]
mod common;

use common::{Gate, until, watched};
use pirn::thread::{self, Interrupted};
use pirn_actor::{self as actor, Out};
use std::io::{self, Read};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn threads() -> u64 {
    pirn::metrics::snapshot().sum("threads")
}

/// Drops a generator after its producer has opened the gate. The producer is a thread until then.
fn drop_early(produce: impl FnOnce(&mut Out<u8>, &Gate) -> io::Result<()> + Send + 'static) {
    let begun = Gate::new();
    let begins = begun.clone();
    let items = actor::generate(1, move |out| produce(out, &begins));
    begun.wait();
    assert_ne!(threads(), 0);
    drop(items);
    until(|| threads() == 0);
}

#[watched]
fn no_thread_is_left_behind() {
    // Blocked in `give`.
    drop_early(|out, begun| {
        out.give(0)?;
        begun.open();
        Ok(out.give(1)?)
    });
    // Computing.
    drop_early(|_, begun| {
        begun.open();
        while !thread::is_interrupted() {
            std::hint::spin_loop();
        }
        Ok(())
    });
    // Sleeping.
    drop_early(|_, begun| {
        begun.open();
        Ok(thread::sleep_interruptible(HOUR)?)
    });
    // Blocked in a read.
    let (mut reader, _writer) = io::pipe().unwrap();
    drop_early(move |_, begun| {
        begun.open();
        reader.read_exact(&mut [0])
    });
    // Several at once, one of which fails.
    let producers = (0..8).map(|producer| {
        move |out: &mut Out<u8>| match producer {
            0 => Err(Interrupted),
            _ => (0..).try_for_each(|n| out.give(n)),
        }
    });
    let items = actor::generate_parallel(2, producers);
    assert!(items.last().unwrap().is_err());
    until(|| threads() == 0);
    // A reduction that fails at last.
    let map = |n: u32| if n < 100 { Ok(n) } else { Err("enough") };
    assert!(actor::try_map_reduce(8, 0.., map, 0, |sum, n| Ok(sum + n)).is_err());
    until(|| threads() == 0);
    // Batches and stocks have a thread only while they work, and timers only while there are some.
    let batches = actor::batch(10, Duration::from_millis(1), |items: Vec<u32>| items.len());
    let stock = actor::prefetch(1, || Ok::<_, Interrupted>([1, 2, 3]));
    assert_eq!((*batches.ask(1).unwrap(), stock.take()), (1, Ok(1)));
    until(|| threads() == 0);
    assert_eq!(stock.take(), Ok(2));
}
