//! Benchmark peer: coroutines of the crate may, as its own examples use them.
//!
//! may is used as it comes. Its number of workers follows the CPU affinity by default (it asks
//! `num_cpus`, which asks `sched_getaffinity`), and its stacks of 32 KiB hold every workload but
//! `deep`.

mod computing;
mod coroutines;
mod deep;
mod echo;
mod http;
mod http_client;
mod mutex;
mod parked;
mod rows;
mod scope;
mod sleeping;
mod spawn;
mod switching;
mod ticker;
mod timers;

use anyhow::Result;
use peer_protocol::{Params, Round, Workload};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Without a backtrace: one needs memory mappings, and may panics when it has used up all that
    // the kernel allows (two for each coroutine; vm.max_map_count).
    panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    peer_protocol::run("may", env!("MEASURED"), find)
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
        "serve" => http::serve,
        "gateway" => http::gateway,
        "http-server" => http::http_server,
        _ => return None,
    };
    Some(make(params).map(|workload| {
        start_runtime();
        panics_to_errors(workload)
    }))
}

/// may starts its workers when it first spawns, which only prepares what is measured.
fn start_runtime() {
    coroutines::inside(|| {});
}

/// may panics, with the operating system's words, when it cannot get a stack; a coroutine that
/// fails ends likewise in a panic of the one that joins it.
fn panics_to_errors(mut workload: Workload) -> Workload {
    Box::new(move |round: &mut Round| {
        catch_unwind(AssertUnwindSafe(|| workload(round)))
            .unwrap_or_else(|panic| Err(coroutines::error_of(&*panic)))
    })
}
