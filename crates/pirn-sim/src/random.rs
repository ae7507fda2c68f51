//! Random numbers from the seed, in one stream per purpose: a schedule that is replayed in part
//! draws fewer numbers for switches, and must change neither the time nor what the program draws.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// One stream.
pub(crate) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// Returns a number below `bound`, which is not 0. Its bias is below 2^-32 for bounds below
    /// 2^32.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        scaled(self.0.next_u64(), bound)
    }

    /// Returns whether an event of this probability happens.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        share(self.0.next_u64()) < probability
    }

    /// Fills a buffer.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) {
        self.0.fill_bytes(buffer);
    }
}

/// The streams of a run, of which the program's calls decide the order.
pub(crate) struct Streams {
    /// Which thread runs next.
    pub(crate) schedule: Stream,
    /// Which places are points.
    pub(crate) places: Stream,
    /// What the program takes for random.
    pub(crate) data: Stream,
}

impl Streams {
    /// Returns the streams of a seed.
    pub(crate) fn new(seed: u64) -> Streams {
        let stream = |purpose| Stream(Xoshiro256PlusPlus::seed_from_u64(mixed(seed, purpose)));
        Streams {
            schedule: stream(1),
            places: stream(2),
            data: stream(3),
        }
    }
}

/// What is drawn for a point of a thread, whatever other threads have done before.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// How long the point takes.
    Cost = 4,
    /// Whether the thread pauses, and for how long.
    Pause,
    /// How long a message takes.
    Message,
    /// What a crash leaves on a disk, and whether a call on it fails.
    Disk,
    /// Whether a wait returns without a wake.
    SpuriousWake,
    /// Whether a thread cannot be made.
    Spawn,
    /// What a read or a write does.
    Fault,
    /// Which faults there are, and when.
    Chaos,
}

/// Returns a number for the `count`th point of the thread with this number.
pub(crate) fn at(seed: u64, purpose: Purpose, thread: u32, count: u64) -> u64 {
    mixed(mixed(seed, purpose as u64), u64::from(thread) << 40 ^ count)
}

/// Scales a number to below `bound`, which is not 0.
pub(crate) fn scaled(number: u64, bound: u64) -> u64 {
    ((u128::from(number) * u128::from(bound)) >> 64) as u64
}

/// Returns a number as one from 0 to below 1, by 53 bits, as many as the fraction of an `f64` has.
pub(crate) fn share(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns a number that depends on each bit of both (the finalizer of SplitMix64).
fn mixed(seed: u64, with: u64) -> u64 {
    let mut it = seed ^ with.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    it = (it ^ it >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    it = (it ^ it >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    it ^ it >> 31
}
