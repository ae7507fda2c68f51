//! Numbers that are drawn, in a simulation by the seed.

use std::hash::{BuildHasher, RandomState};

/// Returns a number below `end`.
pub fn below(end: u64) -> u64 {
    RandomState::new().hash_one(()) % end
}
