//! What works ahead, in parallel or in time leaves no thread behind. Alone in its process, so that
//! it can count all virtual threads.

#[path = "flow/common.rs"]
mod common;

use common::{Gate, HOUR, until, watched};
use pirn::thread::{self, Interrupted};
use pirn_flow::generator::{Out, generate, generate_parallel};
use pirn_flow::map_reduce::try_map_reduce;
use pirn_flow::prefetch::prefetch;
use std::io::{self, Read};
use std::iter;

fn threads() -> u64 {
    pirn::metrics::snapshot().sum("threads")
}

/// Drops a generator after its producer has opened the gate. The producer is a thread until then.
fn drop_early(produce: impl FnOnce(&mut Out<u8>, &Gate) -> io::Result<()> + Send + 'static) {
    let begun = Gate::new();
    let begins = begun.clone();
    let items = generate(1, move |out| produce(out, &begins));
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
    // Giving: that fails once the generator is gone, room or not.
    drop_early(|out, begun| {
        begun.open();
        iter::repeat(0).try_for_each(|n| {
            thread::yield_now();
            Ok(out.give(n)?)
        })
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
            _ => iter::repeat(0).try_for_each(|n| out.give(n)),
        }
    });
    let items = generate_parallel(2, producers);
    assert!(items.last().unwrap().is_err());
    until(|| threads() == 0);
    // A reduction that fails at last.
    let map = |n: u32| if n < 100 { Ok(n) } else { Err("enough") };
    assert!(try_map_reduce(8, 0.., map, 0, |sum, n| Ok(sum + n)).is_err());
    until(|| threads() == 0);
    // A stock has a thread only while a delivery is under way.
    let stock = prefetch(1, || Ok::<_, Interrupted>([1, 2, 3]));
    assert_eq!(stock.take(), Ok(1));
    until(|| threads() == 0);
    assert_eq!(stock.take(), Ok(2));
}
