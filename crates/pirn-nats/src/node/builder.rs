//! Making nodes.

use super::Node;
use super::members::{Members, PERIOD};
use super::shared::{Pulse, Shared};
use crate::engine::{Engine, Nats, Registry};
use crate::error::NodeError;
use crate::pending::Pending;
use crate::subject::{Place, all, is_system};
use crate::wire::decode;
use async_nats::ConnectOptions;
use core::fmt;
use core::sync::atomic::AtomicU64;
use core::time::Duration;
use pirn::thread::{self, JoinHandle};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The shortest lease: below, a busy machine would lose names.
const SHORTEST: Duration = Duration::from_secs(1);

/// Makes nodes that are different from the usual.
///
/// # Examples
/// ```no_run
/// use pirn_nats::Node;
/// use pirn_nats::async_nats::ConnectOptions;
/// use std::time::Duration;
///
/// let node = Node::builder()
///     .name("bank-1")
///     .options(ConnectOptions::new().add_root_certificates("ca.pem".into()).require_tls(true))
///     .patience(Duration::from_secs(5))
///     .replicas(3)
///     .connect("tls://a.example:4222, tls://b.example:4222", "bank")?;
/// # Ok::<(), pirn_nats::NodeError>(())
/// ```
pub struct Builder {
    name: Option<Arc<str>>,
    options: ConnectOptions,
    patience: Duration,
    lease: Duration,
    queue: usize,
    replicas: usize,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Returns a builder of usual nodes.
    pub fn new() -> Builder {
        Builder {
            name: None,
            options: ConnectOptions::new(),
            patience: Duration::from_secs(30),
            lease: Duration::from_secs(10),
            queue: 8192,
            replicas: 1,
        }
    }

    /// Sets the name, for people. Several nodes may have the same. It is the process's number by
    /// default.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// Sets how the client connects: TLS, credentials. The node itself sets its times, its queue
    /// and its event callback.
    pub fn options(mut self, options: ConnectOptions) -> Builder {
        self.options = options;
        self
    }

    /// Sets how long an ask waits that has no time limit of its own: 30 s by default. So an ask
    /// ends even if the node that handles it is lost.
    pub fn patience(mut self, patience: Duration) -> Builder {
        self.patience = patience;
        self
    }

    /// Sets the time after which a name is free again whose holder is not heard of: 10 s by
    /// default, at least 1 s. It must be the same on all nodes of a system.
    pub fn lease(mut self, lease: Duration) -> Builder {
        self.lease = lease.max(SHORTEST);
        self
    }

    /// Sets how many messages wait for each served actor before its mailbox: 8,192 by default. If
    /// there are more, they are dropped and [counted](Node::dropped), and their askers are told
    /// that it is [`Full`](pirn_actor::AskError::Full).
    pub fn queue(mut self, messages: usize) -> Builder {
        self.queue = messages.max(1);
        self
    }

    /// Sets on how many servers of a cluster the registry and durable queues are kept: 1 by
    /// default, for a single server; 3 for a cluster, so that one of them may be lost. It counts
    /// when a system is used for the first time.
    pub fn replicas(mut self, servers: usize) -> Builder {
        self.replicas = servers.max(1);
        self
    }

    /// Connects a node to a server, or to one of several, with commas between. `system` is the name
    /// that all nodes which find each other share: letters, digits, `-`, `_`.
    ///
    /// # Errors
    /// No server can be reached, or lets the node in; `system` has other characters.
    pub fn connect(self, url: &str, system: &str) -> Result<Node, NodeError> {
        if !is_system(system) {
            return Err(NodeError::System(system.into()));
        }
        let servers: Vec<String> = url.split(',').map(|url| url.trim().to_string()).collect();
        let name = self.name.clone();
        let name = name.unwrap_or_else(|| std::process::id().to_string().into());
        let registry = Registry {
            bucket: format!("pirn-{system}-names"),
            lease: self.lease,
            replicas: self.replicas,
        };
        let options = self.options.name(&name);
        let engine = Nats::connect(servers, options, self.queue, registry)?;
        let times = (self.patience, self.lease);
        begin(Box::new(engine), system, name, times, self.replicas)
    }
}

/// Starts a node, over an engine that is connected.
pub(crate) fn begin(
    engine: Box<dyn Engine>,
    system: &str,
    name: Arc<str>,
    times: (Duration, Duration),
    replicas: usize,
) -> Result<Node, NodeError> {
    let shared = Arc::new(share(engine, system, name, times, replicas));
    match start(&shared) {
        Ok(thread) => Ok(Node::new(shared, thread)),
        Err(error) => {
            shared.engine.close();
            Err(error)
        }
    }
}

fn share(
    engine: Box<dyn Engine>,
    system: &str,
    name: Arc<str>,
    (patience, lease): (Duration, Duration),
    replicas: usize,
) -> Shared {
    let inbox = engine.inbox();
    let id = inbox.rsplit('.').next().unwrap_or(&inbox).into();
    Shared {
        system: system.to_string(),
        id,
        name,
        patience,
        lease,
        replicas,
        names: engine.names(),
        engine,
        pending: Pending::default(),
        members: Members::default(),
        inbox,
        tasks: Mutex::default(),
        numbers: AtomicU64::new(1),
        undelivered: AtomicU64::new(0),
        pulse: Pulse::default(),
    }
}

/// Listens to answers and heartbeats, and starts the node's own.
fn start(shared: &Arc<Shared>) -> Result<JoinHandle<()>, NodeError> {
    let weak = Arc::downgrade(shared);
    let answered = move |packet| {
        if let Some(shared) = weak.upgrade() {
            shared.pending.answer(packet);
        }
    };
    let inbox = format!("{}.*", shared.inbox);
    shared.engine.listen(inbox, Box::new(answered))?;
    let weak = Arc::downgrade(shared);
    let heard = move |packet: crate::packet::Packet| {
        if let (Some(shared), Ok(beat)) = (weak.upgrade(), decode(&packet.body)) {
            shared.members.heard(beat, Instant::now());
        }
    };
    let beats = all(&shared.system, Place::Node);
    shared.engine.listen(beats, Box::new(heard))?;
    shared.settle()?;
    let beating = Arc::clone(shared);
    let beat = move || {
        loop {
            beating.beat(false);
            beating.members.look(Instant::now());
            beating.pending.expire(Instant::now());
            if !beating.pulse.wait(PERIOD) {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("nats pulse".to_string());
    thread.spawn(beat).map_err(NodeError::unavailable)
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options hold secrets.
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("patience", &self.patience)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}
