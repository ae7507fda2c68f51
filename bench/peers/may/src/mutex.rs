//! `mutex`: many coroutines lock one mutex.

use crate::coroutines::{Arrivals, joined};
use anyhow::{Result, ensure};
use may::go;
use may::sync::{Mutex, SyncFlag};
use peer_protocol::{Params, Workload, nanos_per};
use std::sync::Arc;
use std::time::Instant;

pub fn mutex(params: &Params) -> Result<Workload> {
    let (threads, ops) = (params.count("threads")?, params.get("ops")?);
    let share = ops / threads as u64;
    ensure!(
        share * threads as u64 == ops,
        "{threads} does not divide {ops}"
    );
    Ok(Box::new(move |round| {
        let number = Arc::new(Mutex::new(0));
        let gate = Arc::new((Arrivals::expect(threads), SyncFlag::new()));
        let spawn = |_| {
            let (number, gate) = (number.clone(), gate.clone());
            go!(move || {
                let (arrivals, open) = &*gate;
                arrivals.arrive();
                open.wait();
                for _ in 0..share {
                    *number.lock().unwrap() += 1;
                }
            })
        };
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        let (arrivals, open) = &*gate;
        arrivals.wait();
        let start = Instant::now();
        open.fire();
        handles.into_iter().for_each(joined);
        let value = nanos_per(start.elapsed(), ops);
        round.metric("lock", value, "ns/lock", *number.lock().unwrap(), ops);
        Ok(())
    }))
}
