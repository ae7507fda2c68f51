//! An actor that adds up numbers.

use crate::Started;
use anyhow::Result;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, call};

pub struct Counter;

pub enum Message {
    /// Adds a number.
    Add(u64),
    /// Asks for the sum.
    Total(RpcReplyPort<u64>),
    /// Asks for the number after this one.
    Next(u64, RpcReplyPort<u64>),
}

impl Actor for Counter {
    type Msg = Message;
    type State = u64;
    type Arguments = u64;

    async fn pre_start(&self, _: ActorRef<Message>, sum: u64) -> Result<u64, ActorProcessingErr> {
        Ok(sum)
    }

    async fn handle(
        &self,
        _: ActorRef<Message>,
        message: Message,
        sum: &mut u64,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Add(number) => *sum += number,
            Message::Total(reply) => reply.send(*sum)?,
            Message::Next(number, reply) => reply.send(number + 1)?,
        }
        Ok(())
    }
}

/// Starts as many, with the sum 0.
pub async fn start_all(count: u64) -> Result<Started<Counter>> {
    let mut counters = Started::with_capacity(count);
    for _ in 0..count {
        counters.start(Counter, 0).await?;
    }
    Ok(counters)
}

impl Started<Counter> {
    /// Asks each for its sum, one after the other, and adds these up.
    pub async fn total(&self) -> Result<u64> {
        let mut sum = 0;
        for counter in &self.actors {
            sum += call!(counter, Message::Total)?;
        }
        Ok(sum)
    }
}
