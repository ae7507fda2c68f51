//! Rules about the source of pirn, checked by the tests: its public API is that of the snapshot
//! `crates/pirn/public-api.txt`, and its layers hold.
