//! Resident memory: of server and clients together, who are one process.
//!
//! It is read 60 times in all, every minute of an hour. What leaks with each request makes the
//! second half's maximum larger than the first half's, by what leaks in half the time; what is kept
//! once, such as stacks and the allocator's pools, is there in the first half.
//! [`BOUND`] is more than stacks and pools were seen to grow by in minutes, 5 MiB, and a
//! quarter of the least that leaks with each of some 1,000 requests per second: 32 bytes, of which
//! malloc gives none less, are 57 MiB in half an hour.

use pirn::thread;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const SAMPLES: u32 = 60;
/// By how many bytes the maximum may grow from one half to the other.
pub(crate) const BOUND: u64 = 16 << 20;
/// In less than this the memory has not settled.
const SETTLED: Duration = Duration::from_secs(60);

/// Reads the memory until the time is up, or the test has failed. Returns nothing for short runs.
pub(crate) fn sample(end: Instant, length: Duration, is_over: &AtomicBool) -> Vec<u64> {
    let every = length / SAMPLES;
    let mut samples = Vec::new();
    let mut next = Instant::now() + every;
    while Instant::now() < end && !is_over.load(Relaxed) {
        if length >= SETTLED && Instant::now() >= next {
            samples.push(resident());
            println!("{} KiB", samples[samples.len() - 1] >> 10);
            next += every;
        }
        thread::sleep(
            Duration::from_millis(100).min(end.saturating_duration_since(Instant::now())),
        );
    }
    samples
}

/// Returns the bytes that are resident.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .unwrap();
    kib.parse::<u64>().unwrap() << 10
}

/// Returns how many bytes more the second half's maximum is than the first half's.
pub(crate) fn growth(samples: &[u64]) -> u64 {
    let halves = samples.split_at(samples.len() / 2);
    let most = |half: &[u64]| half.iter().copied().max().unwrap_or_default();
    match samples.len() {
        0 | 1 => 0,
        _ => most(halves.1).saturating_sub(most(halves.0)),
    }
}

#[test]
fn growth_is_what_the_second_half_has_more_at_most() {
    for (samples, bytes) in [
        (&[][..], 0),
        (&[9], 0),
        (&[1, 3, 2, 3], 0),
        (&[1, 3, 1, 5], 2),
        (&[5, 1, 1, 2], 0),
    ] {
        assert_eq!(growth(samples), bytes, "{samples:?}");
    }
}
