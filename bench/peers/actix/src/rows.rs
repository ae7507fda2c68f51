//! `actor-chain` and `actor-skynet`: actors that know each other, in a row and in a tree.

use crate::{Alive, Gone};
use actix::{Actor, Addr, Context, Handler, MailboxError, Message, ResponseFuture};
use anyhow::{Context as _, Result};
use futures_util::future::join_all;
use peer_protocol::actors::Took;
use std::time::Instant;
use tokio::sync::mpsc;

/// Where a number goes.
enum To {
    Neighbour(Addr<Link>),
    Outside(mpsc::UnboundedSender<u64>),
}

/// Adds one to a number, and passes it on.
struct Link {
    to: To,
    _alive: Alive,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Number(u64);

impl Actor for Link {
    type Context = Context<Self>;
}

impl Handler<Number> for Link {
    type Result = ();

    fn handle(&mut self, Number(number): Number, _: &mut Context<Self>) {
        match &self.to {
            To::Neighbour(link) => link.do_send(Number(number + 1)),
            // The receiver is still waiting.
            To::Outside(outcome) => drop(outcome.send(number + 1)),
        }
    }
}

pub async fn chain(count: u64) -> Result<Took> {
    let (alive, gone) = Gone::when_released();
    let (outcome, mut comes_out) = mpsc::unbounded_channel();
    let mut row = Vec::with_capacity(count as usize);
    let mut to = To::Outside(outcome);
    let start = Instant::now();
    for _ in 0..count {
        let _alive = alive.clone();
        let link = Link { to, _alive }.start();
        to = To::Neighbour(link.clone());
        row.push(link);
    }
    row.last().context("a row has an actor")?.do_send(Number(0));
    let number = comes_out.recv().await.context("the chain is broken")?;
    let elapsed = start.elapsed();
    drop((alive, row, to));
    gone.wait().await;
    Ok((elapsed, number))
}

/// Adds up a range of numbers: has other nodes do it, if there is more than one.
struct Node;

#[derive(Message)]
#[rtype(result = "Result<u64, MailboxError>")]
struct Range {
    first: u64,
    size: u64,
}

impl Actor for Node {
    type Context = Context<Self>;
}

impl Handler<Range> for Node {
    type Result = ResponseFuture<Result<u64, MailboxError>>;

    fn handle(&mut self, Range { first, size }: Range, _: &mut Context<Self>) -> Self::Result {
        if size == 1 {
            return Box::pin(async move { Ok(first) });
        }
        let size = size / 10;
        let sums = (0..10).map(move |child| {
            let first = first + child * size;
            Node.start().send(Range { first, size })
        });
        let sums = join_all(sums);
        Box::pin(async move { sums.await.into_iter().map(|sum| sum?).sum() })
    }
}

pub async fn skynet(leaves: u64) -> Result<Took> {
    let start = Instant::now();
    let (first, size) = (0, leaves);
    let sum = Node.start().send(Range { first, size }).await??;
    Ok((start.elapsed(), sum))
}
