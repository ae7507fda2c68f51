//! `actor-chain` and `actor-skynet`: actors that know each other, in a row and in a tree.

use crate::end;
use anyhow::{Context as _, Result};
use kameo::Actor;
use kameo::actor::{ActorRef, Spawn};
use kameo::message::{Context, Message};
use peer_protocol::actors::Took;
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;
use tokio::sync::mpsc;

/// Where a number goes.
enum To {
    Neighbour(ActorRef<Link>),
    Outside(mpsc::UnboundedSender<u64>),
}

/// Adds one to a number, and passes it on.
#[derive(Actor)]
struct Link(To);

struct Number(u64);

impl Message<Number> for Link {
    type Reply = ();

    async fn handle(&mut self, Number(number): Number, _: &mut Context<Self, ()>) {
        // Who has gone has failed, and the number never comes out.
        match &self.0 {
            To::Neighbour(link) => drop(link.tell(Number(number + 1)).await),
            To::Outside(outcome) => drop(outcome.send(number + 1)),
        }
    }
}

pub async fn chain(count: u64) -> Result<Took> {
    let (outcome, mut comes_out) = mpsc::unbounded_channel();
    let mut row = Vec::with_capacity(count as usize);
    let mut next = To::Outside(outcome);
    let start = Instant::now();
    for _ in 0..count {
        let link = Link::spawn(Link(next));
        next = To::Neighbour(link.clone());
        row.push(link);
    }
    let rightmost = row.last().context("a row has an actor")?;
    rightmost.tell(Number(0)).await?;
    let number = comes_out.recv().await.context("the chain is broken")?;
    let elapsed = start.elapsed();
    drop(next);
    end(&row).await?;
    Ok((elapsed, number))
}

/// Adds up a range of numbers: has other nodes do it, if there is more than one.
#[derive(Actor)]
struct Node;

struct Range {
    first: u64,
    size: u64,
}

impl Message<Range> for Node {
    type Reply = u64;

    async fn handle(&mut self, Range { first, size }: Range, _: &mut Context<Self, u64>) -> u64 {
        match size {
            1 => first,
            _ => parts(first, size / 10).await.expect("a node answers"),
        }
    }
}

/// The sum of ten parts. A handler of nodes awaits this, so it cannot be an `async fn`.
fn parts(first: u64, size: u64) -> Pin<Box<dyn Future<Output = Result<u64>> + Send>> {
    Box::pin(async move {
        let mut answers = Vec::with_capacity(10);
        for child in 0..10 {
            let node = Node::spawn(Node);
            let first = first + child * size;
            answers.push(node.ask(Range { first, size }).enqueue().await?);
        }
        let mut sum = 0;
        for answer in answers {
            sum += answer.await?;
        }
        Ok(sum)
    })
}

pub async fn skynet(leaves: u64) -> Result<Took> {
    let start = Instant::now();
    let (first, size) = (0, leaves);
    let sum = Node::spawn(Node).ask(Range { first, size }).await?;
    Ok((start.elapsed(), sum))
}
