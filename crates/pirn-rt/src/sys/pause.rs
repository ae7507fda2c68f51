//! Yielding and napping, on platform threads.

use super::{call, timespec};

/// The number of looks before the first yield.
const SPINS: u32 = 100;
/// The number of looks before the first nap.
const YIELDS: u32 = 110;
const NAP_NS: u64 = 50_000;

/// Lets other OS threads run.
pub fn os_yield() {
    // SAFETY: no arguments.
    let _ = unsafe { call!(libc::SYS_sched_yield) };
}

/// Puts the platform thread to sleep for some nanoseconds.
pub fn nap(nanos: u64) {
    let time = timespec(nanos);
    // SAFETY: a valid timespec.
    let _ = unsafe { call!(libc::SYS_nanosleep, &raw const time, 0) };
}

/// Waits a little before the next look at a value that another OS thread is about to change: spins
/// at first, then yields, then naps. `look` counts from 0.
pub fn back_off(look: u32) {
    match look {
        0..SPINS => core::hint::spin_loop(),
        SPINS..YIELDS => os_yield(),
        _ => nap(NAP_NS),
    }
}
