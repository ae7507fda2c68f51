#![doc = include_str!("../README.md")]

mod durable;
mod engine;
mod error;
mod node;
mod packet;
mod pending;
mod poison;
mod remote;
mod serve;
#[cfg(test)]
mod simulated;
mod subject;
mod topic;
mod wire;

/// The client that carries everything, for its [`ConnectOptions`](async_nats::ConnectOptions).
pub use async_nats;
pub use durable::{DeadLetter, Durable, DurableOptions, Workers};
pub use error::NodeError;
pub use node::{Builder, Holder, Node, NodeInfo};
pub use remote::{Call, Remote};
pub use serve::{Answers, Holding, Registration, Served, Serving};
pub use topic::{Subscription, Topic};
pub use wire::Wire;
