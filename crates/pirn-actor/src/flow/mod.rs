//! How work flows between actors: in a row, ahead of its user, in batches, at a rate, in parallel.

mod pipeline;
