//! From a packet to a message: by the name of its type, which must have been registered.

use super::actor::Answers;
use super::answering::send_when_given;
use crate::node::Shared;
use crate::packet::Packet;
use crate::wire::{Wire, decode, encode};
use core::ops::RangeInclusive;
use pirn_actor::AskError;
use pirn_actor::error::Failure;
use pirn_actor::time::with_deadline;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// The request to a node that asks where an actor is.
pub(crate) const WATCH: &str = "watch";

/// The answer: by what its end is told.
#[derive(Serialize, Deserialize)]
pub(crate) struct Whereabouts {
    pub(crate) node: String,
    pub(crate) name: String,
    pub(crate) actor: u64,
}

type Deliver<A> = fn(&A, Packet, &Arc<Shared>);

/// The types of messages that an actor accepts from other nodes.
pub(super) struct Routes<A>(BTreeMap<&'static str, (RangeInclusive<u32>, Deliver<A>)>);

impl<A> Routes<A> {
    pub(super) fn new() -> Routes<A> {
        Routes(BTreeMap::new())
    }

    pub(super) fn add<M: Wire>(&mut self)
    where
        A: Answers<M>,
    {
        let route = (M::OLDEST..=M::VERSION, deliver::<A, M> as Deliver<A>);
        self.0.insert(M::NAME, route);
    }

    /// Gives a packet to the actor, or tells the asker why not. Waits for room in the mailbox.
    pub(super) fn deliver(&self, actor: &A, number: u64, packet: Packet, shared: &Arc<Shared>) {
        if let Some(control) = &packet.head.control {
            let answer = answer_control(control, number, shared);
            return shared.respond(packet.reply_to, answer);
        }
        match self.route(&packet) {
            Ok(deliver) => deliver(actor, packet, shared),
            Err(why) => shared.refuse(packet.reply_to, AskError::Failed(Failure::new(why))),
        }
    }

    fn route(&self, packet: &Packet) -> Result<Deliver<A>, String> {
        let Some(kind) = &packet.head.kind else {
            return Err("the message does not say what type it is".to_string());
        };
        match self.0.get(&*kind.name) {
            Some((versions, deliver)) if versions.contains(&kind.version) => Ok(*deliver),
            Some((versions, _)) => Err(format!(
                "{} is known here in the versions {versions:?}, not in {}",
                kind.name, kind.version
            )),
            None => Err(format!("{} is not accepted here", kind.name)),
        }
    }
}

fn answer_control(control: &str, actor: u64, shared: &Shared) -> Result<bytes::Bytes, AskError> {
    if control != WATCH {
        let why = format!("this node does not know the request {control:?}");
        return Err(AskError::Failed(Failure::new(why)));
    }
    let whereabouts = Whereabouts {
        node: shared.id.to_string(),
        name: shared.name.to_string(),
        actor,
    };
    encode(&whereabouts).map_err(AskError::Failed)
}

/// Gives a message to the actor. If it is a request, the answer is sent when it is there.
fn deliver<A: Answers<M>, M: Wire>(actor: &A, packet: Packet, shared: &Arc<Shared>) {
    let message: M = match decode(&packet.body) {
        Ok(message) => message,
        Err(failure) => return shared.refuse(packet.reply_to, AskError::Failed(failure)),
    };
    let Some(to) = packet.reply_to else {
        if actor.send(message).is_err() {
            shared.undelivered();
        }
        return;
    };
    let ask = || actor.ask_later(message);
    let came = packet.came.unwrap_or_else(Instant::now);
    let deadline = packet.head.deadline.and_then(|left| came.checked_add(left));
    let asked = match deadline {
        Some(deadline) => with_deadline(deadline, ask),
        None => ask(),
    };
    let reply = match asked {
        Ok(reply) => reply,
        Err(error) => return shared.refuse(Some(to), error.into_ask_error()),
    };
    send_when_given(reply, to, shared);
}
