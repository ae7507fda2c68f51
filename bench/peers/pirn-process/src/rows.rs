//! `actor-chain` and `actor-skynet`: processes that know each other, in a row and in a tree.

use crate::end;
use anyhow::{Context, Result};
use peer_protocol::actors::Took;
use pirn_actor::{self as actor, Inbox, Process, RecvError, ReplyTo};
use std::sync::mpsc::{self, Sender};
use std::time::Instant;

/// Where a number goes.
enum To {
    Neighbour(Process<u64, ()>),
    Outside(Sender<u64>),
}

/// Adds one to a number, and passes it on.
fn link(to: To) -> Process<u64, ()> {
    actor::process(move |inbox: &mut Inbox<u64>| {
        while let Ok(number) = inbox.recv() {
            // Who has gone has failed, and the number never comes out.
            match &to {
                To::Neighbour(link) => drop(link.send(number + 1)),
                To::Outside(outcome) => drop(outcome.send(number + 1)),
            }
        }
    })
}

pub fn chain(count: u64) -> Result<Took> {
    let (outcome, comes_out) = mpsc::channel();
    let mut row = Vec::with_capacity(count as usize);
    let mut next = To::Outside(outcome);
    let start = Instant::now();
    for _ in 0..count {
        let link = link(next);
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

/// Asks for the sum of a range of numbers.
struct Range {
    first: u64,
    size: u64,
    sum: ReplyTo<u64>,
}

/// Adds up one range: has other nodes do it, if there is more than one number.
fn node() -> Process<Range, Result<(), RecvError>> {
    actor::process(|inbox: &mut Inbox<Range>| {
        let Range { first, size, sum } = inbox.recv()?;
        if size == 1 {
            sum.send(first);
            return Ok(());
        }
        let size = size / 10;
        let sums = std::array::from_fn::<_, 10, _>(|child| {
            let first = first + child as u64 * size;
            node().ask_later(move |sum| Range { first, size, sum })
        });
        let all = sums
            .into_iter()
            .map(|sum| sum.expect("a new process is there"))
            .map(|sum| sum.recv().expect("a node answers"))
            .sum();
        sum.send(all);
        Ok(())
    })
}

pub fn skynet(leaves: u64) -> Result<Took> {
    let start = Instant::now();
    let (first, size) = (0, leaves);
    let sum = node().ask(move |sum| Range { first, size, sum })?;
    Ok((start.elapsed(), sum))
}
