//! `malloc`: one size of memory over and over, and many sizes in disorder.

use super::start::inside;
use anyhow::Result;
use peer_protocol::{Params, Workload, nanos_per};
use std::hint::black_box;
use std::time::{Duration, Instant};

pub fn new(params: &Params) -> Result<Workload> {
    let pairs = params.get("pairs")?;
    Ok(Box::new(move |round| {
        let (elapsed, sum) = inside(move || Ok(same(pairs)))?;
        let due = pairs * (pairs + 1) / 2;
        round.metric("64 B", nanos_per(elapsed, pairs), "ns/pair", sum, due);
        let (elapsed, sum) = inside(move || Ok(mixed(pairs)))?;
        round.metric("mixed", nanos_per(elapsed, pairs), "ns/pair", sum, due);
        Ok(())
    }))
}

/// Boxes of 64 bytes, each freed before the next; gives the sum of their numbers.
fn same(pairs: u64) -> (Duration, u64) {
    let mut sum = 0;
    let start = Instant::now();
    for number in 1..=pairs {
        let memory = black_box(Box::new([number; 8]));
        sum += memory[7];
    }
    (start.elapsed(), sum)
}

/// A thousand allocations, replaced in random order; gives the sum of the numbers of all there
/// were.
fn mixed(pairs: u64) -> (Duration, u64) {
    const LIVE: usize = 1000;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut live: Vec<Vec<u64>> = (0..LIVE).map(|_| random.allocation(0)).collect();
    let mut sum = 0;
    let start = Instant::now();
    for number in 1..=pairs {
        let place = random.next() as usize % LIVE;
        let new = random.allocation(number);
        sum += std::mem::replace(&mut live[place], new)[0];
    }
    let elapsed = start.elapsed();
    sum += live.iter().map(|memory| memory[0]).sum::<u64>();
    (elapsed, sum)
}

/// Numbers that look random and are the same every time (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }

    /// A vector of 2 to 512 words, mostly small, of which the first is `number`.
    fn allocation(&mut self, number: u64) -> Vec<u64> {
        let random = self.next() as usize;
        let largest = 2 << (random % 9);
        let words = largest / 2 + (random >> 8) % (largest / 2) + 1;
        let mut memory = black_box(Vec::with_capacity(words));
        memory.push(number);
        memory
    }
}
