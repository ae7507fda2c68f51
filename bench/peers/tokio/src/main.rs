//! Benchmark peer: tasks of tokio, on its multi-threaded runtime as it comes.
//!
//! The runtime has as many workers as the CPU affinity of the process allows, tokio's default, and
//! lives as long as the process. Main waits in `block_on`, as under `#[tokio::main]`: what it
//! spawns comes from outside the workers. Only where a workload says so is it a task that spawns.

mod actors;
mod computing;
mod deep;
mod echo;
mod gateway;
mod http_server;
mod mutex;
mod parked;
mod place;
mod rows;
mod scope;
mod serve;
mod sleeping;
mod spawn;
mod switching;
mod tasks;
mod ticker;
mod timers;
mod turns;

use anyhow::{Context, Result};
use peer_protocol::{Params, Workload};
use std::process::ExitCode;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    peer_protocol::run("tokio", env!("MEASURED"), find)
}

fn find(name: &str, params: &Params) -> Option<Result<Workload>> {
    let make = match name {
        "spawn" => spawn::spawn,
        "yield" => switching::yielding,
        "pingpong" => switching::pingpong,
        "parked" => parked::parked,
        "sleepers" => sleeping::sleepers,
        "deep" => deep::deep,
        "cpu-bound" => computing::cpu_bound,
        "ticker" => ticker::ticker,
        "database" => sleeping::database,
        "skynet" => rows::skynet,
        "chain" => rows::chain,
        "wait-and-hurry" => computing::wait_and_hurry,
        "mutex" => mutex::mutex,
        "timers" => timers::timers,
        "random-numbers" => sleeping::random_numbers,
        "echo" => echo::echo,
        "scope" => scope::scope,
        "serve" => serve::serve,
        "http-server" => http_server::http_server,
        "gateway" => gateway::gateway,
        _ => return peer_protocol::actors::find::<actors::Tasks>(name, params),
    };
    let runtime = match name {
        "deep" => deep::runtime(params),
        _ => Runtime::new().context("cannot start the runtime"),
    };
    Some(runtime.and_then(|runtime| make(runtime, params)))
}
