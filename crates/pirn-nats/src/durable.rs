//! Durable queues: each message is handled at least once.
//!
//! ```text
//!   sent --taken--> being worked on --answered--> gone
//!     ^                |       |
//!     +-- after a pause+       +-- failed n times --> a dead letter
//!     +-- its worker's node is lost
//! ```

use crate::engine::{Job, Queue, Work};
use crate::error::NodeError;
use crate::node::Node;
use crate::packet::{Kind, Packet};
use crate::poison::locked;
use crate::serve::{Answers, Task};
use crate::wire::{Wire, decode, encode};
use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use pirn::thread;
use pirn_actor::address::Tell;
use pirn_actor::error::{Failure, Refusal};
use pirn_actor::{AskError, SendError};
use std::sync::{Arc, Condvar, Mutex};

/// How long a worker waits for a message before it looks whether it is to end.
const WAIT: Duration = Duration::from_secs(1);
/// How long a worker waits when the server does not answer.
const PAUSE: Duration = Duration::from_millis(500);

/// How a durable queue keeps messages, and how they are worked on.
///
/// # Examples
/// ```
/// use pirn_nats::DurableOptions;
/// use std::time::Duration;
///
/// let options = DurableOptions::new()
///     .attempts(3)
///     .backoff(Duration::from_secs(1)..Duration::from_secs(60))
///     .at_once(8);
/// # drop(options);
/// ```
#[derive(Clone, Debug)]
pub struct DurableOptions {
    attempts: u64,
    backoff: Range<Duration>,
    at_once: usize,
    patience: Duration,
    memory: Duration,
}

impl Default for DurableOptions {
    fn default() -> DurableOptions {
        DurableOptions::new()
    }
}

impl DurableOptions {
    /// Returns the usual options.
    pub fn new() -> DurableOptions {
        DurableOptions {
            attempts: 5,
            backoff: Duration::from_secs(1)..Duration::from_secs(60),
            at_once: 1,
            patience: Duration::from_secs(30),
            memory: Duration::from_secs(120),
        }
    }

    /// Sets how often a message is taken before it is a dead letter: 5 times by default.
    pub fn attempts(mut self, attempts: u64) -> DurableOptions {
        self.attempts = attempts.max(1);
        self
    }

    /// Sets the time between a failure and the next attempt: the start of the range the first time,
    /// twice as long each time, up to the end of the range. From 1 s to 60 s by default.
    pub fn backoff(mut self, range: Range<Duration>) -> DurableOptions {
        self.backoff = range;
        self
    }

    /// Sets how many messages each [`serve`](Durable::serve) hands out at the same time: 1 by
    /// default, which keeps their order as long as no message fails and no other actor serves the
    /// queue.
    pub fn at_once(mut self, messages: usize) -> DurableOptions {
        self.at_once = messages.max(1);
        self
    }

    /// Sets the time after which the server gives a message to another worker if it hears nothing
    /// from the first: 30 s by default. A handler may take longer: its node says that it is at
    /// work. The time is fixed when the queue is made.
    pub fn patience(mut self, patience: Duration) -> DurableOptions {
        self.patience = patience.max(Duration::from_millis(100));
        self
    }

    /// Sets the time for which a message with the same identity is not taken again: 2 minutes by
    /// default. The time is fixed when the queue is made.
    pub fn memory(mut self, memory: Duration) -> DurableOptions {
        self.memory = memory.max(Duration::from_millis(100));
        self
    }

    fn pause(&self, attempt: u64) -> Duration {
        let doublings = u32::try_from(attempt.saturating_sub(1))
            .unwrap_or(31)
            .min(31);
        let pause = self.backoff.start.saturating_mul(1 << doublings);
        pause.min(self.backoff.end.max(self.backoff.start))
    }
}

/// A durable queue: the server keeps each message until an actor has answered it, on whatever node.
///
/// A message is handled at least once: a second time if a node is lost between the handler's end
/// and the server's noting it. So handlers should do no harm if they do something twice.
///
/// # Examples
/// ```no_run
/// use pirn_nats::{Node, wire};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Mail { to: String }
/// wire!(Mail, "post.Mail");
///
/// let node = Node::connect("nats://127.0.0.1:4222", "post")?;
/// let outbox = node.durable::<Mail>("outbox")?;
/// outbox.send_once("invoice-17", &Mail { to: "bob".to_string() })?;
///
/// let sender = pirn_actor::function(|mail: Mail| println!("to {}", mail.to));
/// let workers = outbox.serve(&sender)?;
/// # workers.stop();
/// # Ok::<(), pirn_nats::NodeError>(())
/// ```
pub struct Durable<M> {
    node: Node,
    name: Arc<str>,
    work: Arc<dyn Work>,
    options: DurableOptions,
    messages: PhantomData<fn(M)>,
}

impl<M: Wire> Durable<M> {
    pub(crate) fn open(
        node: Node,
        name: &str,
        options: DurableOptions,
    ) -> Result<Durable<M>, NodeError> {
        let queue = Queue {
            system: node.shared().system.clone(),
            name: name.to_string(),
            replicas: node.shared().replicas,
            patience: options.patience,
            memory: options.memory,
        };
        Ok(Durable {
            work: node.shared().engine.work(queue)?.into(),
            node,
            name: name.into(),
            options,
            messages: PhantomData,
        })
    }

    /// Adds a message, and waits until the server has it.
    ///
    /// # Errors
    /// The message comes back. If the server did not answer in time, it may have it nevertheless.
    pub fn send(&self, message: M) -> Result<(), SendError<M>> {
        let id = format!("{}-{}", self.node.id(), self.node.shared().number());
        match self.send_once(&id, &message) {
            Ok(_) => Ok(()),
            Err(error) => {
                let refusal = match error {
                    NodeError::Closed => Refusal::Closed,
                    error => Refusal::Failed(Failure::new(error.to_string())),
                };
                Err(SendError::new(message, Arc::clone(&self.name), refusal))
            }
        }
    }

    /// Adds a message with an identity, and waits until the server has it. Returns false if one
    /// with the same identity was added within the queue's [memory](DurableOptions::memory): so a
    /// sender that got no answer may simply try again.
    ///
    /// # Errors
    /// The server does not answer in time; the message is too large, or cannot be written.
    pub fn send_once(&self, id: &str, message: &M) -> Result<bool, NodeError> {
        let mut packet = Packet {
            body: encode(message).map_err(NodeError::unavailable)?,
            ..Packet::default()
        };
        packet.head.id = Some(id.to_string());
        packet.head.kind = Some(Kind {
            name: M::NAME.to_string(),
            version: M::VERSION,
        });
        self.work.put(packet)
    }

    /// Has an actor handle the messages: each of them is done when the actor has answered. If the
    /// handler panics, or the actor ends before, it is taken again later. Any number of actors on
    /// any number of nodes may serve one queue.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn serve<A: Answers<M> + Sync>(&self, actor: &A) -> Result<Workers, NodeError> {
        self.serve_if(actor, |_| true)
    }

    /// Does the same; a message is done if `is_done` says so of the answer, for instance
    /// `Result::is_ok`. Otherwise it is taken again, as after a panic.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn serve_if<A: Answers<M> + Sync>(
        &self,
        actor: &A,
        is_done: impl Fn(&A::Reply) -> bool + Send + Sync + 'static,
    ) -> Result<Workers, NodeError> {
        let workers = Workers::new(self.options.at_once);
        let ended = Arc::clone(&workers.state);
        actor.on_exit(move |_| ended.end());
        let is_done = Arc::new(is_done);
        self.node.shared().add(&workers.task)?;
        for _ in 0..self.options.at_once {
            let worker = Worker {
                work: Arc::clone(&self.work),
                options: self.options.clone(),
                actor: actor.clone(),
                is_done: Arc::clone(&is_done),
                workers: workers.clone(),
                messages: PhantomData::<fn(M)>,
            };
            let thread = thread::Builder::new().name("nats worker".to_string());
            thread.spawn(move || worker.run()).map_err(|error| {
                workers.state.end();
                NodeError::unavailable(error)
            })?;
        }
        Ok(workers)
    }

    /// Returns dead letters, the oldest first: messages that failed too often. They stay where they
    /// are.
    ///
    /// # Errors
    /// The server does not answer in time.
    pub fn dead_letters(&self, at_most: usize) -> Result<Vec<DeadLetter>, NodeError> {
        let letter = |packet: Packet| DeadLetter {
            kind: packet.head.kind.map_or("?".into(), |kind| kind.name.into()),
            why: packet.head.reason.unwrap_or_default().into(),
            body: packet.body,
        };
        Ok(self.work.dead(at_most)?.into_iter().map(letter).collect())
    }

    /// Returns the number of messages that wait, or are being worked on.
    ///
    /// # Errors
    /// The server does not answer in time.
    pub fn len(&self) -> Result<u64, NodeError> {
        self.work.len()
    }

    /// Returns true if all messages have been handled.
    ///
    /// # Errors
    /// The server does not answer in time.
    pub fn is_empty(&self) -> Result<bool, NodeError> {
        Ok(self.len()? == 0)
    }
}

impl<M: Wire> Tell<M> for Durable<M> {
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        Durable::send(self, message)
    }

    /// Does the same: the server's answer is waited for here, too.
    fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        Durable::send(self, message)
    }
}

impl<M> Clone for Durable<M> {
    fn clone(&self) -> Durable<M> {
        Durable {
            node: self.node.clone(),
            name: Arc::clone(&self.name),
            work: Arc::clone(&self.work),
            options: self.options.clone(),
            messages: PhantomData,
        }
    }
}

impl<M> fmt::Debug for Durable<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Durable").field(&self.name).finish()
    }
}

/// A message of a durable queue that failed too often.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The name of the message's type.
    pub kind: Arc<str>,
    /// Why the last attempt failed.
    pub why: Arc<str>,
    /// The message, as it was sent: JSON.
    pub body: bytes::Bytes,
}

/// Those who work on a durable queue for one actor. They go on when this is dropped, until the
/// actor ends or the node is closed.
#[derive(Clone)]
pub struct Workers {
    state: Arc<WorkersState>,
    task: Arc<Task>,
}

struct WorkersState {
    is_over: AtomicBool,
    running: AtomicUsize,
    pause: Mutex<()>,
    changed: Condvar,
}

impl WorkersState {
    fn end(&self) {
        // Relaxed, here and where it is read: nothing else is communicated.
        self.is_over.store(true, Ordering::Relaxed);
        drop(locked(&self.pause));
        self.changed.notify_all();
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn wait(&self, pause: Duration) {
        let guard = locked(&self.pause);
        if !self.is_over() {
            drop(self.changed.wait_timeout(guard, pause));
        }
    }
}

impl Workers {
    fn new(count: usize) -> Workers {
        let state = Arc::new(WorkersState {
            is_over: AtomicBool::new(false),
            running: AtomicUsize::new(count),
            pause: Mutex::new(()),
            changed: Condvar::new(),
        });
        let stop = Arc::clone(&state);
        let task = Arc::new(Task::new(Box::new(move || stop.end())));
        Workers { state, task }
    }

    /// Has them end after the messages that they are at, and waits for that, at most for 30 s.
    pub fn stop(&self) {
        self.state.end();
        self.task.join(Duration::from_secs(30));
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Workers")
    }
}

struct Worker<A, M, F> {
    work: Arc<dyn Work>,
    options: DurableOptions,
    actor: A,
    is_done: Arc<F>,
    workers: Workers,
    messages: PhantomData<fn(M)>,
}

impl<A, M, F> Worker<A, M, F>
where
    A: Answers<M>,
    M: Wire,
    F: Fn(&A::Reply) -> bool,
{
    fn run(self) {
        while !self.workers.state.is_over() {
            match self.work.take(WAIT) {
                Ok(None) => {}
                Ok(Some(job)) => drop(self.finish(job)),
                Err(_) => self.workers.state.wait(PAUSE),
            }
        }
        // AcqRel: the last one sees what the others have done.
        if self.workers.state.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.workers.task.over();
        }
    }

    /// Works on a message, and tells the server how that went. If it cannot be told, a worker does
    /// it again.
    fn finish(&self, job: Box<dyn Job>) -> Result<(), NodeError> {
        let attempt = job.attempt();
        if attempt > self.options.attempts {
            return job.bury("its worker was lost each time");
        }
        match self.attempt(job.packet()) {
            Ok(()) => job.done(),
            // The actor has ended, and has not seen it: that is no attempt of this message's.
            Err(AskError::Gone) => job.again(self.options.pause(1)),
            Err(error) if attempt == self.options.attempts => job.bury(&error.to_string()),
            Err(_) => job.again(self.options.pause(attempt)),
        }
    }

    fn attempt(&self, packet: &Packet) -> Result<(), AskError> {
        let failed = |why: String| AskError::Failed(Failure::new(why));
        let kind = packet.head.kind.as_ref();
        let kind = kind.ok_or_else(|| failed("it does not say what type it is".to_string()))?;
        if kind.name != M::NAME || !(M::OLDEST..=M::VERSION).contains(&kind.version) {
            let (name, version) = (&kind.name, kind.version);
            return Err(failed(format!(
                "{name}, version {version}, is not known here"
            )));
        }
        let message: M = decode(&packet.body).map_err(AskError::Failed)?;
        let asked = self.actor.ask_later(message);
        let answer = asked.map_err(SendError::into_ask_error)?.recv()?;
        match (self.is_done)(&answer) {
            true => Ok(()),
            false => Err(failed("the answer says that it is not done".to_string())),
        }
    }
}
