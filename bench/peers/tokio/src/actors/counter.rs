//! A task that adds up numbers.

use super::ROOM;
use anyhow::Result;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub enum Message {
    /// Adds a number.
    Add(u64),
    /// Asks for the sum.
    Total(oneshot::Sender<u64>),
    /// Asks for the number after this one.
    Next(u64, oneshot::Sender<u64>),
}

#[derive(Clone)]
pub struct Counter(mpsc::Sender<Message>);

impl Counter {
    /// Starts the task. It ends when no handle is left.
    pub fn start(sum: u64) -> (Counter, JoinHandle<()>) {
        let (sender, inbox) = mpsc::channel(ROOM);
        (Counter(sender), tokio::spawn(count(sum, inbox)))
    }

    /// Starts this many.
    pub fn start_all(count: u64) -> (Vec<Counter>, Vec<JoinHandle<()>>) {
        (0..count).map(|_| Counter::start(0)).unzip()
    }

    pub async fn add(&self, number: u64) -> Result<()> {
        Ok(self.0.send(Message::Add(number)).await?)
    }

    pub async fn total(&self) -> Result<u64> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Message::Total(reply)).await?;
        Ok(answer.await?)
    }

    pub async fn next(&self, number: u64) -> Result<u64> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Message::Next(number, reply)).await?;
        Ok(answer.await?)
    }
}

async fn count(mut sum: u64, mut inbox: mpsc::Receiver<Message>) {
    while let Some(message) = inbox.recv().await {
        match message {
            Message::Add(number) => sum += number,
            // Who does not wait for the answer any more needs none.
            Message::Total(reply) => drop(reply.send(sum)),
            Message::Next(number, reply) => drop(reply.send(number + 1)),
        }
    }
}

/// Asks each for its sum, one after the other, and adds these up.
pub async fn total(counters: &[Counter]) -> Result<u64> {
    let mut sum = 0;
    for counter in counters {
        sum += counter.total().await?;
    }
    Ok(sum)
}
