//! `scope`: not there yet.

use anyhow::Result;
use peer_protocol::{Params, Scopes, Workload};

pub fn new(params: &Params) -> Result<Workload> {
    Scopes::of(params)?;
    Ok(Box::new(|round| {
        for metric in ["two", "many", "first"] {
            round.skip(metric, "Pirn has no structured concurrency yet");
        }
        Ok(())
    }))
}
