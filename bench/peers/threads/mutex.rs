//! `mutex`: threads that lock and unlock one mutex.

use super::crowd::Crowd;
use super::start::{join_all, spawn_all};
use crate::sync::Mutex;
use anyhow::Result;
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::Arc;
use std::time::Instant;

pub fn new(params: &Params) -> Result<Workload> {
    let (count, ops) = (params.get("threads")?, params.get("ops")?);
    Ok(Box::new(move |round| {
        let crowd = Crowd::of(count);
        let number = Arc::new(Mutex::new(0));
        let (gate, shared) = (Arc::clone(&crowd), Arc::clone(&number));
        let threads = spawn_all(count, move |_| {
            gate.wait();
            for _ in 0..ops / count {
                *shared.lock().unwrap() += 1;
            }
        })?;
        crowd.watch();
        let start = Instant::now();
        crowd.wake(&threads);
        join_all(threads).collect::<Result<()>>()?;
        let elapsed = start.elapsed();
        let number = *number.lock().unwrap();
        round.metric("lock", nanos_per(elapsed, ops), "ns/lock", number, ops);
        Ok(())
    }))
}
