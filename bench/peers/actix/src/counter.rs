//! An actor that adds up numbers.

use crate::Alive;
use actix::{Actor, Addr, Context, Handler, Message};
use anyhow::Result;

pub struct Counter {
    sum: u64,
    _alive: Alive,
}

/// Adds a number.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Add(pub u64);

/// Asks for the sum.
#[derive(Message)]
#[rtype(result = "u64")]
pub struct Total;

/// Asks for the number after this one.
#[derive(Message)]
#[rtype(result = "u64")]
pub struct Next(pub u64);

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Add> for Counter {
    type Result = ();

    fn handle(&mut self, Add(number): Add, _: &mut Context<Self>) {
        self.sum += number;
    }
}

impl Handler<Total> for Counter {
    type Result = u64;

    fn handle(&mut self, Total: Total, _: &mut Context<Self>) -> u64 {
        self.sum
    }
}

impl Handler<Next> for Counter {
    type Result = u64;

    fn handle(&mut self, Next(number): Next, _: &mut Context<Self>) -> u64 {
        number + 1
    }
}

pub fn start(sum: u64, alive: &Alive) -> Addr<Counter> {
    let _alive = alive.clone();
    Counter { sum, _alive }.start()
}

/// Starts as many, with the sum 0.
pub fn start_all(count: u64, alive: &Alive) -> Vec<Addr<Counter>> {
    (0..count).map(|_| start(0, alive)).collect()
}

/// Asks each for its sum, one after the other, and adds these up.
pub async fn total(counters: &[Addr<Counter>]) -> Result<u64> {
    let mut sum = 0;
    for counter in counters {
        sum += counter.send(Total).await?;
    }
    Ok(sum)
}
