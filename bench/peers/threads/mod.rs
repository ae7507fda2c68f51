//! The workloads of `bench/PROTOCOL.md` for programs with `std::thread`'s names. `crate::thread`
//! says whose threads they are: these files do not know. Of `scope` each has its own,
//! `crate::scope`.

mod chain;
mod cpu_bound;
pub mod crowd;
mod database;
mod deep;
mod echo;
mod gateway;
mod hogs;
mod http;
mod malloc;
mod mutex;
mod parked;
mod pingpong;
mod random_numbers;
mod serve;
mod server;
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
    ("scope", crate::scope::new),
    ("serve", serve::new),
    ("http-server", serve::http_server),
    ("gateway", gateway::new),
];

/// Makes the workload of this name.
pub fn find(name: &str, params: &Params) -> Option<Result<Workload>> {
    let (_, new) = ALL.iter().find(|(known, _)| *known == name)?;
    Some(new(params))
}
