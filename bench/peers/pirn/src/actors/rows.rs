//! `actor-chain` and `actor-skynet`: actors that know each other, in a row and in a tree.

use super::end;
use anyhow::{Context as _, Result};
use peer_protocol::actors::Took;
use pirn_actor::{self as actor, Context, Handle, Ref};
use std::sync::mpsc::{self, Sender};
use std::time::Instant;

/// Where a number goes.
enum To {
    Neighbour(Ref<Link>),
    Outside(Sender<u64>),
}

/// Adds one to a number, and passes it on.
struct Link(To);

impl Handle<u64> for Link {
    type Reply = ();

    fn handle(&mut self, number: u64, _: &Context<Self>) {
        // Who has gone has failed, and the number never comes out.
        match &self.0 {
            To::Neighbour(link) => drop(link.send(number + 1)),
            To::Outside(outcome) => drop(outcome.send(number + 1)),
        }
    }
}

pub fn chain(count: u64) -> Result<Took> {
    let (outcome, comes_out) = mpsc::channel();
    let mut row = Vec::with_capacity(count as usize);
    let mut next = To::Outside(outcome);
    let start = Instant::now();
    for _ in 0..count {
        let link = actor::spawn(Link(next));
        next = To::Neighbour(link.clone());
        row.push(link);
    }
    row.last().context("a row has an actor")?.send(0)?;
    let number = comes_out.recv()?;
    let elapsed = start.elapsed();
    drop(next);
    end(&row)?;
    Ok((elapsed, number))
}

/// Adds up a range of numbers: has other nodes do it, if there is more than one.
struct Node;

struct Range {
    first: u64,
    size: u64,
}

impl Handle<Range> for Node {
    type Reply = u64;

    fn handle(&mut self, Range { first, size }: Range, _: &Context<Self>) -> u64 {
        if size == 1 {
            return first;
        }
        let size = size / 10;
        let sums = std::array::from_fn::<_, 10, _>(|child| {
            let first = first + child as u64 * size;
            actor::spawn(Node).ask_later(Range { first, size })
        });
        sums.into_iter()
            .map(|sum| sum.expect("a new actor is there"))
            .map(|sum| sum.recv().expect("a node answers"))
            .sum()
    }
}

pub fn skynet(leaves: u64) -> Result<Took> {
    let start = Instant::now();
    let sum = actor::spawn(Node).ask(Range {
        first: 0,
        size: leaves,
    })?;
    Ok((start.elapsed(), sum))
}
