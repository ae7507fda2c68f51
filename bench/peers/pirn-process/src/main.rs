//! Benchmark peer: the actors of `pirn_actor` in their other form, processes: each has a virtual
//! thread for its whole life, and receives its messages where it wants to. The peer `pirn` has
//! those whose handlers are called.

mod asks;
mod counter;
mod lives;
mod messages;
mod rows;

use anyhow::{Result, anyhow, ensure};
use peer_protocol::{Params, Workload, actors};
use pirn::thread;
use pirn_actor::{Exit, Process};
use std::process::ExitCode;

fn main() -> ExitCode {
    let version = concat!(
        "pirn ",
        env!("CARGO_PKG_VERSION"),
        ", ",
        env!("RUSTC_VERSION")
    );
    peer_protocol::run("pirn-process", version, find)
}

fn find(name: &str, params: &Params) -> Option<Result<Workload>> {
    Some(match name {
        "actor-messages" => messages::new(params),
        "actor-asks" => asks::new(params),
        "actor-create" => lives::create(params),
        "actor-idle" => lives::idle(params),
        "actor-chain" => actors::chain(params, |row| inside(move || rows::chain(row))),
        "actor-skynet" => actors::skynet(params, |leaves| inside(move || rows::skynet(leaves))),
        _ => return None,
    })
}

/// Gives what `body` returns when a virtual thread runs it.
fn inside<T: Send + 'static>(body: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = thread::spawn(body).join();
    done.map_err(|_| anyhow!("a thread has panicked"))?
}

/// Ends processes, all at once, and waits for them.
fn end<M: Send + 'static, T>(processes: &[Process<M, T>]) -> Result<()> {
    processes.iter().for_each(Process::close);
    for process in processes {
        let exit = process.join();
        ensure!(exit == Exit::Closed, "a process ended otherwise: {exit}");
    }
    Ok(())
}
