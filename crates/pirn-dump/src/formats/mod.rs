//! Dumps in the formats of other tools, and in JSON.

mod folded;
#[cfg(test)]
mod foreign;
mod jdk;
mod json;
mod own;
mod pprof;
#[cfg(test)]
mod tests;

pub(crate) use folded::write as folded;
pub(crate) use jdk::{Edition, write as jdk};
pub(crate) use own::write as json;
pub(crate) use pprof::write as pprof;
