//! What carries packets: NATS, behind a trait, so that others can follow.

mod kv;
mod nats;
mod runtime;
mod work;

pub(crate) use nats::{Nats, Registry};

use crate::error::NodeError;
use crate::packet::Packet;
use core::time::Duration;
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

pub(crate) type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Carries packets between nodes.
pub(crate) trait Engine: Send + Sync {
    /// Hands a packet over. The future waits only if very many are under way.
    fn publish(&self, packet: Packet) -> Task<Result<(), NodeError>>;

    /// Has a function called for each packet to a subject, which may hold wildcards. It must not
    /// block: nothing else is received meanwhile.
    fn listen(
        &self,
        subject: String,
        deliver: Box<dyn FnMut(Packet) + Send>,
    ) -> Result<(), NodeError>;

    /// Receives packets to a subject: all of them, or those that other members of the group do not
    /// get.
    fn serve(&self, subject: String, group: Option<String>)
    -> Result<Box<dyn Incoming>, NodeError>;

    /// Returns the registry of names.
    fn names(&self) -> Box<dyn Names>;

    /// Returns a durable queue. Makes it if it does not exist.
    fn work(&self, queue: Queue) -> Result<Box<dyn Work>, NodeError>;

    /// Runs a task that does not block.
    fn spawn(&self, task: Task<()>);

    /// Returns the same task with a time limit: then it returns nothing.
    fn until(&self, deadline: Instant, task: Task<Result<(), NodeError>>) -> Until;

    /// Returns a subject that only this node listens to.
    fn inbox(&self) -> String;

    fn is_connected(&self) -> bool;

    /// Returns how often packets were dropped because a served actor was too slow.
    fn dropped(&self) -> u64;

    /// Hands over what has been published, and stops.
    fn close(&self);
}

pub(crate) type Until = Task<Option<Result<(), NodeError>>>;

/// Packets that are received one after the other, by a thread that may block.
pub(crate) trait Incoming: Send {
    /// Waits for the next packet. After a stop, returns those that are here or under way already,
    /// and then nothing.
    fn recv(&mut self) -> Option<Packet>;

    /// Returns what stops it, from any thread.
    fn stop(&self) -> Stop;
}

pub(crate) type Stop = Box<dyn Fn() + Send + Sync>;

/// Leases of names: each is held by one holder, for as long as it is kept.
pub(crate) trait Names: Send + Sync {
    /// Takes a name. Returns the lease's revision.
    fn take(&self, name: &str, holder: &[u8], limit: Duration) -> Result<u64, NotHeld>;

    /// Keeps a name. Returns the new revision.
    fn keep(
        &self,
        name: &str,
        holder: &[u8],
        revision: u64,
        limit: Duration,
    ) -> Result<u64, NotHeld>;

    /// Gives a name back.
    fn release(&self, name: &str, revision: u64, limit: Duration);

    /// Returns the holder of a name, and the lease's revision.
    fn holder(&self, name: &str, limit: Duration) -> Result<Option<(Vec<u8>, u64)>, NodeError>;
}

/// Why a name is not held.
#[derive(Debug)]
pub(crate) enum NotHeld {
    /// This other holder has it.
    By(Vec<u8>),
    /// It cannot be said. Perhaps the next attempt succeeds.
    Unknown(NodeError),
}

impl From<NodeError> for NotHeld {
    fn from(error: NodeError) -> NotHeld {
        NotHeld::Unknown(error)
    }
}

/// What a durable queue is to be like.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) system: String,
    pub(crate) name: String,
    pub(crate) replicas: usize,
    /// The time after which a message that is not being worked on is given to another worker.
    pub(crate) patience: Duration,
    /// The time for which a message with the same identity is dropped.
    pub(crate) memory: Duration,
}

/// A durable queue.
pub(crate) trait Work: Send + Sync {
    /// Adds a packet. Returns false if one with the same identity is there, or was.
    fn put(&self, packet: Packet) -> Result<bool, NodeError>;

    /// Waits for a packet, for as long as `wait`.
    fn take(&self, wait: Duration) -> Result<Option<Box<dyn Job>>, NodeError>;

    /// Returns dead letters, the oldest first.
    fn dead(&self, most: usize) -> Result<Vec<Packet>, NodeError>;

    /// Returns the number of packets that are waiting, or being worked on.
    fn len(&self) -> Result<u64, NodeError>;
}

/// A packet of a durable queue that is being worked on. As long as this exists, no other worker
/// gets it.
pub(crate) trait Job: Send {
    fn packet(&self) -> &Packet;
    /// How often it has been taken, this time included.
    fn attempt(&self) -> u64;
    /// It is done.
    fn done(self: Box<Self>) -> Result<(), NodeError>;
    /// It is to be taken again, after `pause`.
    fn again(self: Box<Self>, pause: Duration) -> Result<(), NodeError>;
    /// It is never taken again, and kept among the dead letters with the reason.
    fn bury(self: Box<Self>, why: &str) -> Result<(), NodeError>;
}
