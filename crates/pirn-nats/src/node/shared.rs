//! What the parts of a node share.

use super::members::{Beat, ENDS, End, Members};
use crate::engine::{Engine, Names};
use crate::error::NodeError;
use crate::packet::Packet;
use crate::pending::Pending;
use crate::poison::locked;
use crate::serve::Task;
use crate::subject::{Place, subject};
use bytes::Bytes;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use pirn_actor::error::{Failure, Refusal};
use pirn_actor::{AskError, Exit};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Instant;

/// How long the server may take to note a subscription.
const SETTLE: Duration = Duration::from_secs(5);
/// The time for which an end is told in heartbeats.
const TELL: Duration = Duration::from_secs(10);

pub(crate) struct Shared {
    pub(crate) system: String,
    /// What no other node has.
    pub(crate) id: Arc<str>,
    /// For people.
    pub(crate) name: Arc<str>,
    /// How long an ask without a deadline waits.
    pub(crate) patience: Duration,
    pub(crate) lease: Duration,
    pub(crate) replicas: usize,
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) names: Box<dyn Names>,
    pub(crate) pending: Pending,
    pub(crate) members: Members,
    /// Answers to this node's requests go to subjects below this one.
    pub(crate) inbox: String,
    pub(crate) tasks: Mutex<Vec<Weak<Task>>>,
    pub(crate) numbers: AtomicU64,
    /// Messages that could not be given to an actor.
    pub(crate) undelivered: AtomicU64,
    pub(crate) pulse: Pulse,
}

/// What the thread that sends heartbeats waits at.
#[derive(Default)]
pub(crate) struct Pulse {
    state: Mutex<PulseState>,
    changed: Condvar,
}

#[derive(Default)]
struct PulseState {
    is_over: bool,
    is_due: bool,
    ends: Vec<(End, Instant)>,
}

/// Whether a sender waits, if very many packets are under way.
#[derive(Clone, Copy)]
pub(crate) enum Room {
    No,
    Until(Option<Instant>),
}

impl Shared {
    /// Sends a packet.
    pub(crate) fn publish(&self, packet: Packet, room: Room) -> Result<(), Refusal> {
        let mut task = self.engine.publish(packet);
        let at_once = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let sent = match (at_once, room) {
            (Poll::Ready(sent), _) => Some(sent),
            (Poll::Pending, Room::No) => return Err(Refusal::Full),
            (Poll::Pending, Room::Until(None)) => {
                Some(pirn::block_on_interruptible(task).map_err(|_| Refusal::Interrupted)?)
            }
            (Poll::Pending, Room::Until(Some(at))) => {
                let limited = self.engine.until(at, task);
                pirn::block_on_interruptible(limited).map_err(|_| Refusal::Interrupted)?
            }
        };
        match sent {
            None => Err(Refusal::TimedOut),
            Some(Ok(())) => Ok(()),
            Some(Err(NodeError::Closed)) => Err(Refusal::Closed),
            Some(Err(error)) => Err(Refusal::Failed(Failure::new(error.to_string()))),
        }
    }

    async fn answer(&self, to: String, answer: Result<Bytes, AskError>) {
        let sent = self.engine.publish(Packet::answer(to.clone(), answer));
        if let Err(error @ NodeError::TooLarge { .. }) = sent.await {
            let failure = Failure::new(format!("the answer was not sent: {error}"));
            let instead = Packet::answer(to, Err(AskError::Failed(failure)));
            drop(self.engine.publish(instead).await);
        }
    }

    /// Sends an answer, if there is an asker: at once, or by a task if very many packets are under
    /// way.
    pub(crate) fn respond(self: &Arc<Shared>, to: Option<String>, answer: Result<Bytes, AskError>) {
        if let Some(to) = to {
            let shared = Arc::clone(self);
            let mut task = Box::pin(async move { shared.answer(to, answer).await });
            let at_once = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            if at_once.is_pending() {
                self.engine.spawn(task);
            }
        }
    }

    /// Tells an asker, if there is one, that there is no answer.
    pub(crate) fn refuse(self: &Arc<Shared>, to: Option<String>, error: AskError) {
        if to.is_none() {
            self.undelivered();
        }
        self.respond(to, Err(error));
    }

    pub(crate) fn undelivered(&self) {
        // Relaxed: a number for people.
        self.undelivered.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a number that nothing else on this node has.
    pub(crate) fn number(&self) -> u64 {
        // Relaxed: numbers only have to differ.
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Has a task end with the node.
    ///
    /// # Errors
    /// The node is closed.
    pub(crate) fn add(&self, task: &Arc<Task>) -> Result<(), NodeError> {
        let mut tasks = locked(&self.tasks);
        tasks.retain(|task| task.strong_count() > 0);
        tasks.push(Arc::downgrade(task));
        drop(tasks);
        match self.pulse.is_over() {
            true => Err(NodeError::Closed),
            false => Ok(()),
        }
    }

    /// Waits until the server has noted what was subscribed to before: a packet to oneself.
    pub(crate) fn settle(&self) -> Result<(), NodeError> {
        let (to, reply) = pirn_actor::reply::channel::<()>();
        let until = Instant::now() + SETTLE;
        let number = self.pending.enter(Box::new(to), until);
        let number = number.ok_or(NodeError::Closed)?;
        let packet = Packet {
            subject: format!("{}.{number}", self.inbox),
            body: Bytes::from_static(b"null"),
            ..Packet::default()
        };
        let sent = self.publish(packet, Room::Until(Some(until)));
        sent.map_err(NodeError::unavailable)?;
        reply.recv_deadline(until).map_err(NodeError::unavailable)
    }

    /// Tells the other nodes that an actor has ended: at once, and again for a while.
    pub(crate) fn ended(&self, actor: u64, exit: &Exit) {
        let mut state = locked(&self.pulse.state);
        state.ends.push((End::new(actor, exit), Instant::now()));
        state.is_due = true;
        drop(state);
        self.pulse.changed.notify_all();
    }

    /// Sends a heartbeat; several, if very many actors have ended.
    pub(crate) fn beat(&self, bye: bool) {
        let mut state = locked(&self.pulse.state);
        state.ends.retain(|(_, at)| at.elapsed() < TELL);
        let ends: Vec<_> = state.ends.iter().map(|(end, _)| end.clone()).collect();
        drop(state);
        let empty: &[End] = &[];
        let parts = ends.chunks(ENDS).chain(ends.is_empty().then_some(empty));
        let count = ends.len().div_ceil(ENDS).max(1);
        for (part, ends) in parts.enumerate() {
            let beat = Beat {
                node: self.id.to_string(),
                name: self.name.to_string(),
                bye: bye && part + 1 == count,
                ends: ends.to_vec(),
            };
            let packet = Packet {
                subject: subject(&self.system, Place::Node, &self.id),
                body: crate::wire::encode(&beat).expect("a heartbeat is plain data"),
                ..Packet::default()
            };
            // If nothing can be sent now, the next one comes soon.
            drop(self.publish(packet, Room::No));
        }
    }
}

impl Pulse {
    /// Waits for as long as `period`, or until there is news. Returns false if the node is closed.
    pub(crate) fn wait(&self, period: Duration) -> bool {
        let state = locked(&self.state);
        let calm = |state: &mut PulseState| !state.is_over && !state.is_due;
        let waited = self.changed.wait_timeout_while(state, period, calm);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_due = false;
        !state.is_over
    }

    /// Ends the thread. Returns false if that has been done before.
    pub(crate) fn end(&self) -> bool {
        let was_over = core::mem::replace(&mut locked(&self.state).is_over, true);
        self.changed.notify_all();
        !was_over
    }

    pub(crate) fn is_over(&self) -> bool {
        locked(&self.state).is_over
    }
}
