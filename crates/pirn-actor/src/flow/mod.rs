//! How work flows between actors: in a row, ahead of its user, in batches, at a rate, in parallel.

mod generator;
mod pipeline;
mod rate;

pub use generator::{
    Generator, Out, ScopedGenerator, TimedOut, generate, generate_parallel, generate_scoped,
};
pub use rate::rate_limited;
