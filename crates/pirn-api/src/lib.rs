//! Compares the public API of pirn with its snapshot, `crates/pirn/public-api.txt`: see
//! `tests/public_api.rs`. There is nothing else here.
