//! Streams and graphs of work on virtual threads.
//!
//! ```
//! use pirn_flow::generator::generate;
//! use pirn_flow::map_reduce::map_reduce;
//! use std::io;
//!
//! // Made on a thread of its own, at most 8 items ahead.
//! let squares = generate(8, |out| (0..4u64).try_for_each(|n| Ok::<_, io::Error>(out.give(n * n)?)));
//! assert_eq!(squares.map(Result::unwrap).sum::<u64>(), 14);
//!
//! // Four at a time.
//! let sum = map_reduce(4, 0..100u64, |n| n * n, 0, |sum, square| sum + square)?;
//! assert_eq!(sum, 328_350);
//! # Ok::<(), io::Error>(())
//! ```
//!
//! * [`generator`]: iterators whose items are made ahead, by one thread or several.
//! * [`map_reduce`]: many items at once, one result, bounded memory.
//! * [`prefetch`]: a stock that is filled before it is empty.
//! * [`progress`]: how far a task is, for a thread that waits for it.
//! * [`machine`]: states, events and hooks; a value, or an actor.
//! * [`watched`]: values that threads wait for and subscribe to.
//! * [`graph`]: steps, some of them at once, for agents and workflows.
//!
//! An interrupt ends all waits here, and so does a [deadline](pirn::scope::deadline()), for
//! instance the one of a request that an actor handles.

#![forbid(unsafe_code)]

/// Compiles and runs the Rust code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/flow.md")]
pub struct Guide;

pub mod generator;
pub mod graph;
pub mod machine;
pub mod map_reduce;
pub mod prefetch;
pub mod progress;
mod wait;
pub mod watched;
