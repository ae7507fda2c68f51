//! What streams and graphs of work do, as their users see it.

mod common;

mod generators;
mod graphs;
mod machines;
mod payloads;
mod prefetches;
mod progress;
mod reductions;
mod watching;
