//! Allocating and freeing: one size over and over, and many sizes in disorder.

use crate::place::compare;
use crate::workload::{Sample, Size, Workload, per};
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::time::Instant;

pub struct Malloc;

impl Workload for Malloc {
    fn name(&self) -> &'static str {
        "malloc"
    }

    fn about(&self) -> &'static str {
        "allocate and free, on a virtual and on a platform thread"
    }

    fn round(&self, size: Size) -> Result<Vec<Sample>> {
        let unit = "malloc + free";
        let mut samples = compare("64 B, ", unit, size.pick(2_000_000, 1000), same)?;
        samples.extend(compare("mixed, ", unit, size.pick(1_000_000, 1000), mixed)?);
        Ok(samples)
    }
}

/// Boxes of 64 bytes, each freed before the next.
fn same(count: usize) -> Result<f64> {
    let mut sum = 0;
    let start = Instant::now();
    for i in 0..count {
        let memory = black_box(Box::new([i; 8]));
        sum += memory[7];
    }
    let elapsed = start.elapsed();
    let expected = count * (count - 1) / 2;
    ensure!(
        sum == expected,
        "the boxes held {sum} in all, not {expected}"
    );
    Ok(per(elapsed, count))
}

/// A thousand allocations of 16 bytes to 4 KiB, mostly small, replaced in random order.
fn mixed(count: usize) -> Result<f64> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut live: Vec<Vec<usize>> = (0..1024).map(|_| random.allocation(1)).collect();
    let mut freed = 0;
    let start = Instant::now();
    for i in 1..=count {
        let place = random.next() as usize % live.len();
        let new = random.allocation(i);
        freed += std::mem::replace(&mut live[place], new)[0];
    }
    let elapsed = start.elapsed();
    // Every allocation holds its number, and is either freed or live.
    let numbers = freed + live.iter().map(|memory| memory[0]).sum::<usize>();
    let expected = live.len() + count * (count + 1) / 2;
    ensure!(
        numbers == expected,
        "the allocations held {numbers} in all, not {expected}"
    );
    Ok(per(elapsed, count))
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

    /// A vector of 2 to 512 words, of which the first is `number`.
    fn allocation(&mut self, number: usize) -> Vec<usize> {
        let random = self.next() as usize;
        let largest = 2 << (random % 9);
        let words = largest / 2 + (random >> 8) % largest / 2 + 1;
        let mut memory = black_box(Vec::with_capacity(words));
        memory.push(number);
        memory
    }
}
