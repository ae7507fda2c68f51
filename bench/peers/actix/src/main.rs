//! Benchmark peer: actors of actix, in a `System` as it comes: all of them on one thread, where the
//! senders are tasks beside them. `do_send` is how actix sends what nobody answers; it ignores the
//! bound of a mailbox, which is 16 messages.

mod asks;
mod counter;
mod lives;
mod messages;
mod rows;

use actix::{System, SystemRunner};
use anyhow::Result;
use peer_protocol::{Params, Workload, actors};
use std::process::ExitCode;
use std::rc::Rc;
use tokio::sync::oneshot;

fn main() -> ExitCode {
    peer_protocol::run("actix", env!("MEASURED"), find)
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
    Some(make(System::new(), params))
}

fn chain(system: SystemRunner, params: &Params) -> Result<Workload> {
    actors::chain(params, move |row| system.block_on(rows::chain(row)))
}

fn skynet(system: SystemRunner, params: &Params) -> Result<Workload> {
    actors::skynet(params, move |leaves| system.block_on(rows::skynet(leaves)))
}

/// What actors hold as long as they live.
type Alive = Rc<oneshot::Sender<()>>;

/// Tells when the actors are gone that hold its counterpart.
struct Gone(oneshot::Receiver<()>);

impl Gone {
    fn when_released() -> (Alive, Gone) {
        let (alive, gone) = oneshot::channel();
        (Rc::new(alive), Gone(gone))
    }

    /// Waits for the end of actors whose addresses have been dropped.
    async fn wait(self) {
        // Nothing is ever sent: the last one drops the sender.
        let _ = self.0.await;
    }
}
