//! Benchmark peer: actors of kameo, on tokio's multi-threaded runtime as it comes. Their mailboxes
//! have room for 64 messages, as they have by default.

mod asks;
mod counter;
mod lives;
mod messages;
mod rows;

use anyhow::{Context, Result};
use kameo::Actor;
use kameo::actor::ActorRef;
use peer_protocol::{Params, Workload, actors};
use std::future::Future;
use std::process::ExitCode;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    peer_protocol::run("kameo", env!("MEASURED"), find)
}

fn find(name: &str, params: &Params) -> Option<Result<Workload>> {
    let make = match name {
        "actor-messages" => messages::new,
        "actor-asks" => asks::new,
        "actor-create" => lives::create,
        "actor-idle" => lives::idle,
        "actor-chain" => chain,
        "actor-skynet" => skynet,
        _ => return None,
    };
    let runtime = Runtime::new().context("cannot start the runtime");
    Some(runtime.and_then(|runtime| make(runtime, params)))
}

fn chain(runtime: Runtime, params: &Params) -> Result<Workload> {
    actors::chain(params, move |row| inside(&runtime, rows::chain(row)))
}

fn skynet(runtime: Runtime, params: &Params) -> Result<Workload> {
    actors::skynet(params, move |leaves| inside(&runtime, rows::skynet(leaves)))
}

/// Gives what `work` returns when a task does it.
fn inside<T: Send + 'static>(
    runtime: &Runtime,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    runtime.block_on(runtime.spawn(work))?
}

/// Ends actors after the messages that they have, and waits for that.
async fn end<A: Actor>(actors: &[ActorRef<A>]) -> Result<()> {
    for actor in actors {
        actor.stop_gracefully().await?;
    }
    for actor in actors {
        actor.wait_for_shutdown().await;
    }
    Ok(())
}
