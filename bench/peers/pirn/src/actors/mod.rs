//! `actors`: those of `pirn_actor` whose handlers are called for each message. The other form has a
//! peer of its own, `pirn-process`.

mod asks;
mod counter;
mod lives;
mod messages;
mod rows;

use anyhow::{Result, ensure};
use peer_protocol::{Params, Workload, actors};
use pirn_actor::{Exit, Ref};

use crate::workloads::start::inside;

/// Makes the workload of this name.
pub fn find(name: &str, params: &Params) -> Option<Result<Workload>> {
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

/// Ends actors, all at once, and waits for them.
fn end<S: Send + 'static>(actors: &[Ref<S>]) -> Result<()> {
    actors.iter().for_each(Ref::close);
    for actor in actors {
        let exit = actor.join();
        ensure!(exit == Exit::Closed, "an actor ended otherwise: {exit}");
    }
    Ok(())
}
