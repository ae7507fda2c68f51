//! Nodes: a process's place in a system of them.

mod builder;
mod members;
mod shared;

pub use builder::Builder;
#[cfg(test)]
pub(crate) use builder::begin;
pub use members::NodeInfo;

pub(crate) use shared::{Room, Shared};

use crate::durable::{Durable, DurableOptions};
use crate::error::NodeError;
use crate::poison::locked;
use crate::remote::Remote;
use crate::serve::{Holding, Registration, Served};
use crate::subject::Place;
use crate::topic::Topic;
use crate::wire::Wire;
use core::fmt;
use core::sync::atomic::Ordering;
use core::time::Duration;
use pirn::thread::JoinHandle;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};

/// How long a look at the registry may take.
const LOOK: Duration = Duration::from_secs(5);
/// How long a node that is closed waits for each actor that it serves to take what has been sent.
const CLOSE: Duration = Duration::from_secs(1);

/// A process's place in a system of nodes: it serves actors to the others, and finds theirs.
///
/// Cheap to clone, and for any thread. When the last one is dropped, those in [`Remote`]s, topics
/// and queues included, the node is closed.
///
/// # Examples
/// See the [crate](crate).
#[derive(Clone)]
pub struct Node(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    pulse: Mutex<Option<JoinHandle<()>>>,
}

impl Node {
    fn new(shared: Arc<Shared>, pulse: JoinHandle<()>) -> Node {
        let pulse = Mutex::new(Some(pulse));
        Node(Arc::new(Handle { shared, pulse }))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Connects a node to a server. `system` is the name that all nodes which find each other
    /// share.
    ///
    /// # Errors
    /// The server cannot be reached, or does not let the node in.
    pub fn connect(url: &str, system: &str) -> Result<Node, NodeError> {
        Builder::new().connect(url, system)
    }

    /// Returns a builder, for nodes that are different from the usual.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Gives an actor a name that no other actor of the system has, and serves it to all nodes:
    /// from the end of the statement on, with the types of messages that are
    /// [accepted](Registration::accepts) in it.
    ///
    /// The name is the actor's until it ends, until the node is closed, or until the node cannot
    /// renew its lease: then the actor is killed before the lease runs out. So the name is
    /// exclusive as long as clocks run at about the same pace, and a handler ends when it is
    /// interrupted. Where that is not enough, send the lease's [fencing
    /// number](Registration::fence) along.
    ///
    /// # Errors
    /// [`NodeError::Taken`]; or the registry does not answer in time.
    pub fn register<A: Served>(&self, name: &str, actor: &A) -> Result<Registration<A>, NodeError> {
        Registration::named(self.shared(), name, || actor.clone())
    }

    /// Has a name held by an actor that `make` makes, whatever happens: as soon as no other actor
    /// of the system has the name, one is made, and served with what `accepts` says; when it has
    /// ended, another one. So an actor that was killed because its lease was lost is replaced, and
    /// on several nodes the others stand by for the one that holds the name.
    ///
    /// It goes on until it is [released](Holding::release), or the node is closed. `make` has to
    /// take less than a lease: what takes long belongs in the recipe of
    /// [`Builder::spawn`](pirn_actor::Builder::spawn).
    ///
    /// # Errors
    /// The node is closed, or no thread can be had.
    ///
    /// # Examples
    /// ```no_run
    /// use pirn_nats::{Node, wire};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Greet(String);
    /// wire!(Greet, "hello.Greet");
    ///
    /// let node = Node::connect("nats://127.0.0.1:4222", "hello")?;
    /// let greeter = || pirn_actor::function(|Greet(name)| format!("hello, {name}"));
    /// let holding = node.hold("greeter", greeter, |greeter| greeter.accepts::<Greet>())?;
    /// # holding.release();
    /// # Ok::<(), pirn_nats::NodeError>(())
    /// ```
    pub fn hold<A: Served>(
        &self,
        name: &str,
        make: impl FnMut() -> A + Send + 'static,
        accepts: impl Fn(Registration<A>) -> Registration<A> + Send + 'static,
    ) -> Result<Holding, NodeError> {
        Holding::begin(self.shared(), name, make, accepts)
    }

    /// Makes an actor a member of a group, and serves it: each message to the group goes to one of
    /// its members, on whatever node.
    ///
    /// # Errors
    /// The node is closed, or the server does not answer in time.
    pub fn join<A: Served>(&self, group: &str, actor: &A) -> Result<Registration<A>, NodeError> {
        Registration::member(self.shared(), group, actor.clone())
    }

    /// Returns the actor with this name, wherever it is, and whether or not there is one now. `A`
    /// is the type of its state, or a [`Call`](crate::Call).
    pub fn find<A>(&self, name: &str) -> Remote<A> {
        Remote::new(self.clone(), Place::Actor, name)
    }

    /// Returns a group of actors, each of whose messages goes to one member.
    pub fn group<A>(&self, name: &str) -> Remote<A> {
        Remote::new(self.clone(), Place::Group, name)
    }

    /// Returns a topic: what is published there goes to all subscribers, on all nodes.
    pub fn topic<M: Wire>(&self, name: &str) -> Topic<M> {
        Topic::new(self.clone(), name)
    }

    /// Returns a durable queue, and makes it if it does not exist: the server keeps what is sent
    /// there until an actor has handled it.
    ///
    /// # Errors
    /// The server does not answer in time, or has no JetStream.
    pub fn durable<M: Wire>(&self, name: &str) -> Result<Durable<M>, NodeError> {
        self.durable_with(name, DurableOptions::new())
    }

    /// Does the same with these options.
    ///
    /// # Errors
    /// As for [`durable`](Node::durable); or the queue is there, and has other times.
    pub fn durable_with<M: Wire>(
        &self,
        name: &str,
        options: DurableOptions,
    ) -> Result<Durable<M>, NodeError> {
        Durable::open(self.clone(), name, options)
    }

    /// Returns the holder of a name.
    ///
    /// # Errors
    /// The registry does not answer in time.
    pub fn holder(&self, name: &str) -> Result<Option<Holder>, NodeError> {
        let found = self.shared().names.holder(name, LOOK)?;
        Ok(found.and_then(|(holder, _)| serde_json::from_slice(&holder).ok()))
    }

    /// Returns the nodes that are heard of, this one among them.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        self.shared().members.nodes()
    }

    /// Returns the node's identity, which no other node has.
    pub fn id(&self) -> Arc<str> {
        Arc::clone(&self.shared().id)
    }

    /// Returns the node's name.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.shared().name)
    }

    /// Returns true if the node is connected to a server now.
    pub fn is_connected(&self) -> bool {
        self.shared().engine.is_connected()
    }

    /// Returns how many messages came here and were dropped: since an actor was too slow for them,
    /// or had ended, or does not accept them. Askers are told, others are not.
    pub fn dropped(&self) -> u64 {
        let undelivered = self.shared().undelivered.load(Ordering::Relaxed);
        self.shared().engine.dropped() + undelivered
    }

    /// Ends the node: names are free, asks that have no answer yet are
    /// [`Gone`](pirn_actor::AskError::Gone), the connection is closed. The actors go on, for this
    /// process.
    pub fn close(&self) {
        self.0.close();
    }
}

impl Handle {
    fn close(&self) {
        let shared = &self.shared;
        if !shared.pulse.end() {
            return;
        }
        let tasks: Vec<_> = core::mem::take(&mut *locked(&shared.tasks));
        let tasks: Vec<_> = tasks.iter().filter_map(std::sync::Weak::upgrade).collect();
        tasks.iter().for_each(|task| task.stop());
        for task in tasks {
            task.join(CLOSE);
        }
        if let Some(pulse) = locked(&self.pulse).take() {
            drop(pulse.join());
        }
        shared.beat(true);
        shared.pending.close();
        shared.members.close();
        shared.engine.close();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("system", &self.shared().system)
            .field("name", &self.shared().name)
            .finish_non_exhaustive()
    }
}

/// The node that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Holder {
    /// The node's identity.
    pub id: String,
    /// The node's name.
    pub node: String,
    /// What no other lease has.
    pub(crate) lease: u64,
}
