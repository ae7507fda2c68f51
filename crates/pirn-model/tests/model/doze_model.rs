//! The monitor's doze: it does not sleep while a processor is held.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::check;
use crate::doze::Doze;

struct World {
    doze: Doze,
    idle: AtomicUsize,
}

impl World {
    /// A carrier takes an idle processor.
    fn take(&self) {
        self.idle.fetch_sub(1, Relaxed);
        self.doze.stir();
    }
}

/// Takes a processor before, during or after the monitor's one doze, which ends for that reason.
fn one_doze(processors: usize) {
    check(3, move || {
        let world = Arc::new(World {
            doze: Doze::new(),
            idle: AtomicUsize::new(processors),
        });
        let carriers: Vec<_> = (0..processors)
            .map(|_| {
                let world = world.clone();
                thread::spawn(move || world.take())
            })
            .collect();
        world.doze.doze(|| world.idle.load(Relaxed) == processors);
        for carrier in carriers {
            carrier.join().unwrap();
        }
    });
}

#[test]
fn a_carrier_that_takes_a_processor_wakes_the_monitor() {
    one_doze(1);
}

#[test]
fn one_of_two_carriers_wakes_the_monitor() {
    one_doze(2);
}
