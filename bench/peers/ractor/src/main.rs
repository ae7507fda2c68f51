//! Benchmark peer: actors of ractor, on tokio's multi-threaded runtime as it comes. Their mailboxes
//! are not bounded.

mod asks;
mod counter;
mod lives;
mod messages;
mod rows;

use anyhow::{Context, Result};
use peer_protocol::{Params, Workload, actors};
use ractor::concurrency::JoinHandle;
use ractor::{Actor, ActorRef};
use std::future::Future;
use std::process::ExitCode;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    peer_protocol::run("ractor", env!("MEASURED"), find)
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

/// Actors of a kind, and what tells of their ends.
struct Started<A: Actor> {
    actors: Vec<ActorRef<A::Msg>>,
    ends: Vec<JoinHandle<()>>,
}

impl<A: Actor> Started<A> {
    fn with_capacity(count: u64) -> Started<A> {
        Started {
            actors: Vec::with_capacity(count as usize),
            ends: Vec::with_capacity(count as usize),
        }
    }

    async fn start(&mut self, actor: A, args: A::Arguments) -> Result<ActorRef<A::Msg>> {
        let (actor, end) = Actor::spawn(None, actor, args).await?;
        self.actors.push(actor.clone());
        self.ends.push(end);
        Ok(actor)
    }

    /// Ends all of them after the messages that they have, and waits for that.
    async fn end(self) -> Result<()> {
        for actor in &self.actors {
            actor.drain()?;
        }
        for end in self.ends {
            end.await?;
        }
        Ok(())
    }
}
