//! An actor that adds up numbers.

use anyhow::Result;
use kameo::Actor;
use kameo::actor::{ActorRef, Spawn};
use kameo::message::{Context, Message};

#[derive(Actor)]
pub struct Counter(pub u64);

/// Adds a number.
pub struct Add(pub u64);

/// Asks for the sum.
pub struct Total;

/// Asks for the number after this one.
pub struct Next(pub u64);

impl Message<Add> for Counter {
    type Reply = ();

    async fn handle(&mut self, Add(number): Add, _: &mut Context<Self, ()>) {
        self.0 += number;
    }
}

impl Message<Total> for Counter {
    type Reply = u64;

    async fn handle(&mut self, Total: Total, _: &mut Context<Self, u64>) -> u64 {
        self.0
    }
}

impl Message<Next> for Counter {
    type Reply = u64;

    async fn handle(&mut self, Next(number): Next, _: &mut Context<Self, u64>) -> u64 {
        number + 1
    }
}

/// Starts as many, with the sum 0.
pub fn start_all(count: u64) -> Vec<ActorRef<Counter>> {
    (0..count).map(|_| Counter::spawn(Counter(0))).collect()
}

/// Asks each for its sum, one after the other, and adds these up.
pub async fn total(counters: &[ActorRef<Counter>]) -> Result<u64> {
    let mut sum = 0;
    for counter in counters {
        sum += counter.ask(Total).await?;
    }
    Ok(sum)
}
