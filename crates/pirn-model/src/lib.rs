//! Checks of the lock-free protocols and pure data structures of `pirn`.
//!
//! This package has no code of its own, only tests. They compile files of `crates/pirn-rt/src`
//! again, and three of `crates/pirn-actor/src`, by `#[path]`. The only part of the runtime that
//! those files use is `crate::primitives`, the atomics. Each test target is a crate with its own
//! `primitives`:
//!
//! | target               | `crate::primitives`      | what it does                               |
//! |----------------------|--------------------------|--------------------------------------------|
//! | `tests/model`        | the `loom` crate's types | explores all interleavings of small cases  |
//! | `tests/plain`        | the runtime's own        | unit, property and stress tests            |
//! | `tests/timer_memory` | the runtime's own        | the timer heap under an allocator that counts and fails |
//!
//! All of them run with `cargo test -p pirn-model`. The last two can run under a sanitizer as well:
//!
//! ```text
//! RUSTFLAGS=-Zsanitizer=address cargo +nightly test -p pirn-model \
//!     --test plain --test timer_memory --target x86_64-unknown-linux-gnu
//! ```
