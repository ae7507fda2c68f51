//! `actor-chain` and `actor-skynet`: actors that know each other, in a row and in a tree.

use crate::Started;
use anyhow::{Context, Result};
use peer_protocol::actors::Took;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;
use tokio::sync::mpsc;

/// Where a number goes.
enum To {
    Neighbour(ActorRef<u64>),
    Outside(mpsc::UnboundedSender<u64>),
}

/// Adds one to a number, and passes it on.
struct Link(To);

impl Actor for Link {
    type Msg = u64;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<u64>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<u64>,
        number: u64,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        match &self.0 {
            To::Neighbour(link) => link.cast(number + 1)?,
            To::Outside(outcome) => outcome.send(number + 1)?,
        }
        Ok(())
    }
}

pub async fn chain(count: u64) -> Result<Took> {
    let (outcome, mut comes_out) = mpsc::unbounded_channel();
    let mut row = Started::with_capacity(count);
    let mut next = To::Outside(outcome);
    let start = Instant::now();
    for _ in 0..count {
        next = To::Neighbour(row.start(Link(next), ()).await?);
    }
    row.actors.last().context("a row has an actor")?.cast(0)?;
    let number = comes_out.recv().await.context("the chain is broken")?;
    let elapsed = start.elapsed();
    row.end().await?;
    Ok((elapsed, number))
}

/// Adds up one range of numbers: has other nodes do it, if there is more than one.
struct Node {
    parent: Parent,
}

/// Who gets a sum.
enum Parent {
    Node(ActorRef<Message>),
    Outside(mpsc::UnboundedSender<u64>),
}

enum Message {
    Range { first: u64, size: u64 },
    Sum(u64),
}

/// What is still to come, and the sum of what has come.
#[derive(Default)]
struct Sums {
    missing: u64,
    sum: u64,
}

impl Node {
    fn answer(&self, myself: &ActorRef<Message>, sum: u64) -> Result<(), ActorProcessingErr> {
        match &self.parent {
            Parent::Node(node) => node.cast(Message::Sum(sum))?,
            Parent::Outside(outcome) => outcome.send(sum)?,
        }
        myself.stop(None);
        Ok(())
    }
}

impl Actor for Node {
    type Msg = Message;
    type State = Sums;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<Sums, ActorProcessingErr> {
        Ok(Sums::default())
    }

    async fn handle(
        &self,
        myself: ActorRef<Message>,
        message: Message,
        sums: &mut Sums,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Range { first, size: 1 } => self.answer(&myself, first)?,
            Message::Range { first, size } => {
                sums.missing = 10;
                let size = size / 10;
                for child in 0..10 {
                    let node = start_node(Parent::Node(myself.clone())).await?;
                    let first = first + child * size;
                    node.cast(Message::Range { first, size })?;
                }
            }
            Message::Sum(sum) => {
                sums.sum += sum;
                sums.missing -= 1;
                if sums.missing == 0 {
                    self.answer(&myself, sums.sum)?;
                }
            }
        }
        Ok(())
    }
}

type Starting = Pin<Box<dyn Future<Output = Result<ActorRef<Message>>> + Send>>;

/// Starts a node. A handler of nodes awaits this, so it cannot be an `async fn`.
fn start_node(parent: Parent) -> Starting {
    Box::pin(async move {
        let (node, _) = Actor::spawn(None, Node { parent }, ()).await?;
        Ok(node)
    })
}

pub async fn skynet(leaves: u64) -> Result<Took> {
    let (outcome, mut comes_out) = mpsc::unbounded_channel();
    let start = Instant::now();
    let root = start_node(Parent::Outside(outcome)).await?;
    root.cast(Message::Range {
        first: 0,
        size: leaves,
    })?;
    let sum = comes_out.recv().await.context("the root has failed")?;
    Ok((start.elapsed(), sum))
}
