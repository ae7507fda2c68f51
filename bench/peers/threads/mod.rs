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
#[path = "../../../crates/pirn-cli/src/retry.rs"]
mod retry;
#[expect(dead_code, reason = "the demo stops its server, a peer just ends")]
#[path = "../../../crates/pirn-cli/src/server.rs"]
#[rustfmt::skip] // it would look for the server's unit tests, in the wrong place
mod server;
mod serve;
mod skynet;
mod sleepers;
mod spawn;
pub mod start;
pub mod threads;
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
