//! The monitor: a platform thread that looks after the processors while any of them is busy.
//!
//! The protocols of [`idle`](super::idle) wake as few carriers as possible, on the assumption
//! that a running carrier comes back to its queue soon. A thread that computes for long breaks that
//! assumption; the monitor repairs it. Every tick it looks whether
//! * a thread waits in the queue of a processor that has not switched since the last tick,
//! * a timer is late (its processor is busy, and the sleepers do not know of it),
//!
//! and if there is an idle processor, wakes a carrier for it. When everything has been idle for a while
//! it sleeps until [`stir`]red.

use super::driver::driver;
use super::{idle, injector, processors};
use crate::sys;
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;

/// Length of a tick while there is something to look after.
const TICK_NS: u64 = 1_000_000;
/// Idle ticks until the monitor sleeps.
const PATIENCE: u32 = 20;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
static STATE: AtomicU32 = AtomicU32::new(AWAKE);

/// Starts the monitor.
pub(crate) fn start() -> io::Result<()> {
    std::thread::Builder::new()
        .name("pirn-monitor".into())
        .stack_size(64 << 10)
        .spawn(run)?;
    Ok(())
}

/// Wakes the monitor if it sleeps: a carrier is about to be busy.
#[inline]
pub(crate) fn stir() {
    // SeqCst, with the exchange in `doze`: either we see it asleep, or it sees that not all
    // processors are idle.
    if STATE.load(Ordering::SeqCst) == ASLEEP && STATE.swap(AWAKE, Ordering::SeqCst) == ASLEEP {
        sys::futex_wake(STATE.as_ptr(), 1);
    }
}

fn run() {
    let mut ticks: Vec<u32> = vec![0; processors().len()];
    let mut idle_for = 0;
    let mut nothing_to_do = 0u32;
    loop {
        // Backs off to 10 ms while it never has to step in.
        let tick = TICK_NS * u64::from(1 + (nothing_to_do / 50).min(9));
        let pause = AtomicU32::new(0);
        let _ = sys::futex_wait(&pause, 0, Some(sys::now() + tick));
        let all_idle = idle::count() == processors().len();
        idle_for = if all_idle { idle_for + 1 } else { 0 };
        if idle_for > PATIENCE {
            doze();
            idle_for = 0;
            nothing_to_do = 0;
        } else if look_after(&mut ticks) {
            nothing_to_do = 0;
        } else {
            nothing_to_do += 1;
        }
    }
}

/// Sleeps until stirred.
fn doze() {
    STATE.store(ASLEEP, Ordering::SeqCst); // SeqCst: see `stir`.
    if idle::count() == processors().len() {
        while STATE.load(Ordering::SeqCst) == ASLEEP {
            let _ = sys::futex_wait(&STATE, ASLEEP, None);
        }
    }
    STATE.store(AWAKE, Ordering::SeqCst);
}

/// One tick. Returns whether a carrier had to be woken.
fn look_after(ticks: &mut [u32]) -> bool {
    let mut stuck = false;
    for (processor, last) in processors().iter().zip(ticks) {
        let tick = processor.tick.load(Ordering::Relaxed); // Relaxed: a hint.
        if tick == *last && !processor.queue.is_empty() {
            stuck = true;
            super::carriers::report_stuck(processor.index);
        }
        *last = tick;
    }
    let needed = stuck || injector::len() > 0 || driver().overdue(TICK_NS);
    if needed && idle::count() > 0 {
        idle::notify();
        return true;
    }
    false
}
