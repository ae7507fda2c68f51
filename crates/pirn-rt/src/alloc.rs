//! Whether the program's allocator has memory.

use std::collections::TryReserveError;

/// Asks the program's allocator for so much memory, and gives it back: for those who are about to
/// allocate in a way that would abort the process.
///
/// # Errors
/// There is none.
pub fn probe(bytes: usize) -> Result<(), TryReserveError> {
    let mut room: Vec<u8> = Vec::new();
    core::hint::black_box(&mut room).try_reserve_exact(bytes)
}
