//! How work flows between actors: in a row, ahead of its user, in batches, at a rate, in parallel.

mod batch;
mod generator;
mod map_reduce;
mod pipeline;
mod prefetch;
mod progress;
mod rate;

pub use batch::{batch, batch_by};
pub use generator::{
    Generator, Out, ScopedGenerator, TimedOut, generate, generate_parallel, generate_scoped,
};
pub use map_reduce::{map_reduce, try_map_reduce};
pub use prefetch::{Prefetch, Prefetched, prefetch};
pub use progress::{Progress, Report, Reports};
pub use rate::rate_limited;
