//! A process that adds up numbers.

use pirn_actor::{self as actor, Inbox, Process, ReplyTo};

pub enum Message {
    /// Adds a number.
    Add(u64),
    /// Asks for the sum.
    Total(ReplyTo<u64>),
    /// Asks for the number after this one.
    Next(u64, ReplyTo<u64>),
}

pub type Counter = Process<Message, ()>;

pub fn counter(mut sum: u64) -> Counter {
    actor::process(move |inbox: &mut Inbox<Message>| {
        while let Ok(message) = inbox.recv() {
            match message {
                Message::Add(number) => sum += number,
                Message::Total(reply) => reply.send(sum),
                Message::Next(number, reply) => reply.send(number + 1),
            }
        }
    })
}
