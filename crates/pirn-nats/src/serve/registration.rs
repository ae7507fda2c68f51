//! Registering an actor: what it accepts, and who ends it.

use super::actor::{Answers, Served};
use super::lease::Lease;
use super::routes::Routes;
use super::task::Task;
use crate::engine::{Incoming, NotHeld};
use crate::error::NodeError;
use crate::node::{Holder, Shared};
use crate::subject::{Place, subject};
use crate::wire::Wire;
use core::fmt;
use core::time::Duration;
use pirn::thread::{self, Panic};
use std::sync::{Arc, mpsc};

/// How long the registry may take to give out a name.
const TAKE: Duration = Duration::from_secs(5);
/// How long giving a name back may take.
const RELEASE: Duration = Duration::from_secs(5);

/// An actor that is being registered: made by [`Node::register`](crate::Node::register) and
/// [`Node::join`](crate::Node::join). Serving begins when this is dropped, or by
/// [`serve`](Registration::serve), so that no message comes before all types are known.
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
/// let greeter = pirn_actor::function(|Greet(name)| format!("hello, {name}"));
/// node.register("greeter", &greeter)?.accepts::<Greet>();
/// # Ok::<(), pirn_nats::NodeError>(())
/// ```
pub struct Registration<A: Served> {
    serving: Serving,
    routes: Option<Routes<A>>,
    start: mpsc::Sender<Routes<A>>,
}

impl<A: Served> Registration<A> {
    /// Takes the name for the actor that `make` returns.
    pub(crate) fn named(
        shared: &Arc<Shared>,
        name: &str,
        make: impl FnOnce() -> A,
    ) -> Result<Registration<A>, NodeError> {
        if shared.pulse.is_over() {
            return Err(NodeError::Closed);
        }
        let holder = Holder {
            id: shared.id.to_string(),
            node: shared.name.to_string(),
            lease: shared.number(),
        };
        let holder = serde_json::to_vec(&holder).expect("a holder is plain data");
        let lease = Lease::take(&*shared.names, name, holder, shared.lease, TAKE);
        let lease = lease.map_err(|error| match error {
            NotHeld::Unknown(error) => error,
            NotHeld::By(holder) => {
                let holder = serde_json::from_slice::<Holder>(&holder);
                NodeError::Taken {
                    name: name.into(),
                    by: holder.map_or("?".into(), |holder| holder.node.into()),
                }
            }
        })?;
        let subject = subject(&shared.system, Place::Actor, name);
        let fence = lease.fence();
        let made = Panic::catch(make).map_err(NodeError::unavailable);
        let begun = made.and_then(|actor| {
            Registration::begin(shared, (subject, None), actor, Some(Arc::new(lease)))
        });
        if begun.is_err() {
            shared.names.release(name, fence, RELEASE);
        }
        begun
    }

    /// Joins a group.
    pub(crate) fn member(
        shared: &Arc<Shared>,
        group: &str,
        actor: A,
    ) -> Result<Registration<A>, NodeError> {
        let subject = subject(&shared.system, Place::Group, group);
        let queue = Some("members".to_string());
        Registration::begin(shared, (subject, queue), actor, None)
    }

    fn begin(
        shared: &Arc<Shared>,
        (subject, group): (String, Option<String>),
        actor: A,
        lease: Option<Arc<Lease>>,
    ) -> Result<Registration<A>, NodeError> {
        let incoming = shared.engine.serve(subject, group)?;
        shared.settle()?;
        let task = Arc::new(Task::new(incoming.stop()));
        shared.add(&task)?;
        let serving = Serving { task, lease };
        let number = shared.number();
        let start = serving.receive(shared, incoming, actor.clone(), number)?;
        if let Err(error) = serving.keep(shared, &actor) {
            serving.task.stop();
            return Err(error);
        }
        let (ended, weak) = (Arc::clone(&serving.task), Arc::downgrade(shared));
        actor.on_exit(move |exit| {
            if let Some(shared) = weak.upgrade() {
                shared.ended(number, exit);
            }
            ended.stop();
        });
        Ok(Registration {
            serving,
            routes: Some(Routes::new()),
            start,
        })
    }

    /// Has messages of this type given to the actor. The node refuses messages of other types by
    /// their type's name, without decoding them.
    pub fn accepts<M: Wire>(mut self) -> Registration<A>
    where
        A: Answers<M>,
    {
        if let Some(routes) = &mut self.routes {
            routes.add::<M>();
        }
        self
    }

    /// Returns the lease's fencing number, if there is a lease: it is greater than any earlier
    /// holder's. Code that writes to a storage on the actor's behalf sends it along, so that the
    /// storage can refuse what an earlier holder writes too late.
    pub fn fence(&self) -> Option<u64> {
        self.serving.fence()
    }

    /// Begins to serve. Returns what ends it before the actor does.
    pub fn serve(mut self) -> Serving {
        self.begin_to_serve();
        self.serving.clone()
    }

    fn begin_to_serve(&mut self) {
        if let Some(routes) = self.routes.take() {
            // If the thread has gone, the actor has ended already.
            drop(self.start.send(routes));
        }
    }
}

impl<A: Served> Drop for Registration<A> {
    fn drop(&mut self) {
        self.begin_to_serve();
    }
}

impl<A: Served> fmt::Debug for Registration<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.serving).finish()
    }
}

/// An actor that is served to other nodes. That goes on when this is dropped.
#[derive(Clone)]
pub struct Serving {
    task: Arc<Task>,
    lease: Option<Arc<Lease>>,
}

impl Serving {
    /// Returns the lease's fencing number: see [`Registration::fence`].
    pub fn fence(&self) -> Option<u64> {
        self.lease.as_ref().map(|lease| lease.fence())
    }

    /// Returns true as long as no other actor can have the name. A member of a group has none.
    pub fn is_held(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.holds())
    }

    /// Ends the serving: other nodes do not find the actor any more, and its name is free. What has
    /// been sent already is given to it. The actor goes on.
    pub fn release(&self) {
        self.task.stop();
        self.task.join(RELEASE);
    }

    /// Starts the thread that keeps the lease.
    fn keep<A: Served>(&self, shared: &Arc<Shared>, actor: &A) -> Result<(), NodeError> {
        let Some(lease) = self.lease.clone() else {
            return Ok(());
        };
        let (task, shared, actor) = (Arc::clone(&self.task), Arc::clone(shared), actor.clone());
        let keep = move || {
            lease.keep(&*shared.names, || {
                actor.kill();
                task.stop();
            });
            task.over();
        };
        let thread = thread::Builder::new().name("nats lease".to_string());
        thread.spawn(keep).map(drop).map_err(NodeError::unavailable)
    }

    /// Starts the thread that gives the actor its messages, as soon as their types are known.
    fn receive<A: Served>(
        &self,
        shared: &Arc<Shared>,
        mut incoming: Box<dyn Incoming>,
        actor: A,
        number: u64,
    ) -> Result<mpsc::Sender<Routes<A>>, NodeError> {
        let (start, started) = mpsc::channel::<Routes<A>>();
        let (task, lease) = (Arc::clone(&self.task), self.lease.clone());
        let shared = Arc::clone(shared);
        let receive = move || {
            let routes = started.recv().unwrap_or_else(|_| Routes::new());
            while let Some(packet) = incoming.recv() {
                if lease.as_ref().is_some_and(|lease| !lease.holds()) {
                    // It is for the next holder, which got it, too.
                    continue;
                }
                let deliver = || routes.deliver(&actor, number, packet, &shared);
                // A panic of a message's `drop` has been reported, and concerns no other message.
                let _ = Panic::catch(deliver);
            }
            drop(incoming);
            match lease {
                Some(lease) => lease.release(),
                None => task.over(),
            }
        };
        let thread = thread::Builder::new().name("nats receive".to_string());
        let spawned = thread.spawn(receive);
        spawned.map(|_| start).map_err(NodeError::unavailable)
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving")
            .field("fence", &self.fence())
            .finish_non_exhaustive()
    }
}
