//! The workloads of `bench/PROTOCOL.md` for programs with the names of `std`. These files do not
//! know whose threads they run on: each peer's `crate::{thread, sync, net}` says it. A thread that
//! has parked calls `crate::end_after_park` before it ends. Each peer has a `scope` and servers of
//! its own; `servers` is for those with `std`'s sockets.

mod chain;
mod cpu_bound;
pub mod crowd;
mod database;
mod deep;
mod echo;
mod hogs;
mod malloc;
mod mutex;
mod parked;
mod pingpong;
mod random_numbers;
mod skynet;
mod sleepers;
mod spawn;
pub mod start;
mod ticker;
mod timers;
mod wait_and_hurry;
mod yields;

use anyhow::Result;
use peer_protocol::{Params, Workload};

/// Makes a workload of its parameters.
type New = fn(&Params) -> Result<Workload>;

const ALL: &[(&str, New)] = &[
    ("spawn", spawn::new),
    ("yield", yields::new),
    ("pingpong", pingpong::new),
    ("parked", parked::new),
    ("sleepers", sleepers::new),
    ("deep", deep::new),
    ("cpu-bound", cpu_bound::new),
    ("ticker", ticker::new),
    ("hogs", hogs::new),
    ("database", database::new),
    ("skynet", skynet::new),
    ("chain", chain::new),
    ("wait-and-hurry", wait_and_hurry::new),
    ("mutex", mutex::new),
    ("timers", timers::new),
    ("random-numbers", random_numbers::new),
    ("echo", echo::new),
    ("malloc", malloc::new),
];

/// Makes the workload of this name.
pub fn find(name: &str, params: &Params) -> Option<Result<Workload>> {
    let (_, new) = ALL.iter().find(|(known, _)| *known == name)?;
    Some(new(params))
}
