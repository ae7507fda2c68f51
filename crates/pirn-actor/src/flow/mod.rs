//! Streams of messages: pipelines, batches, limited rates.

mod batch;
mod pipeline;
mod rate;

pub use crate::each::each;
pub use batch::{batch, batch_by};
pub use rate::rate_limited;
