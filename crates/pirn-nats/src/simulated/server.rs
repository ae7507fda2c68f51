//! A server of messages in the test itself, with a link to each node that delays, and can be cut.
//!
//! It knows subjects, groups, leases and durable queues as NATS does, as far as nodes notice.

use crate::engine::{Engine, Incoming, Job, Names, NotHeld, Queue, Stop, Task, Until, Work};
use crate::error::NodeError;
use crate::packet::{Fault, Head, Packet};
use crate::poison::locked;
use core::time::Duration;
use pirn_testing::below;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

/// Sleeps for less than this number of milliseconds.
pub(super) fn nap(millis: u64) {
    thread::sleep(Duration::from_micros(below(1000 * millis)));
}

#[derive(Default)]
pub(super) struct Server {
    state: Mutex<State>,
    lease: Duration,
    /// Milliseconds that a message takes at most, one way.
    latency: u64,
}

#[derive(Default)]
struct State {
    subscribers: Vec<Subscriber>,
    entries: HashMap<String, Entry>,
    revisions: u64,
    queues: HashMap<String, Vec<Item>>,
    dead: HashMap<String, Vec<Packet>>,
    seen: HashMap<String, Vec<String>>,
    items: u64,
}

struct Subscriber {
    node: u64,
    number: u64,
    subject: String,
    group: Option<String>,
    down: Sender<Down>,
    deliver: Deliver,
}

type Deliver = Arc<Mutex<dyn FnMut(Packet) + Send>>;
type Down = (Deliver, Packet);

/// A lease.
struct Entry {
    holder: Vec<u8>,
    revision: u64,
    until: Instant,
}

/// A message of a durable queue.
struct Item {
    number: u64,
    packet: Packet,
    attempt: u64,
    due: Instant,
    /// It is being worked on, over this link.
    taken: Option<Arc<Wire>>,
}

/// The connection of a node to the server.
#[derive(Default)]
pub(super) struct Wire {
    is_cut: AtomicBool,
    cut_since: Mutex<Option<Instant>>,
}

impl Wire {
    pub(super) fn cut(&self) {
        *locked(&self.cut_since) = Some(Instant::now());
        self.is_cut.store(true, SeqCst);
    }

    pub(super) fn heal(&self) {
        *locked(&self.cut_since) = None;
        self.is_cut.store(false, SeqCst);
    }

    fn is_cut(&self) -> bool {
        self.is_cut.load(SeqCst)
    }

    fn is_silent_for(&self, patience: Duration) -> bool {
        locked(&self.cut_since).is_some_and(|since| since.elapsed() >= patience)
    }
}

/// A node's end of its link.
pub(super) struct Link {
    server: Arc<Server>,
    pub(super) wire: Arc<Wire>,
    node: u64,
    up: Mutex<Option<Sender<Packet>>>,
    down: Sender<Down>,
}

impl Server {
    pub(super) fn new(lease: Duration, latency: u64) -> Arc<Server> {
        Arc::new(Server {
            lease,
            latency,
            ..Server::default()
        })
    }

    fn way(&self) -> Duration {
        Duration::from_micros(100 + below(1000 * self.latency))
    }

    /// Connects a node.
    pub(super) fn link(self: &Arc<Server>, node: u64) -> (Link, Arc<Wire>) {
        let wire = Arc::<Wire>::default();
        let (up, sent) = channel::<Packet>();
        let (down, routed) = channel::<Down>();
        let (server, of_up) = (Arc::clone(self), Arc::clone(&wire));
        thread::spawn(move || {
            for packet in sent {
                thread::sleep(server.way());
                if !of_up.is_cut() {
                    server.route(packet);
                }
            }
        });
        let (server, of_down) = (Arc::clone(self), Arc::clone(&wire));
        thread::spawn(move || {
            for (deliver, mut packet) in routed {
                thread::sleep(server.way());
                if !of_down.is_cut() {
                    packet.came = Some(Instant::now());
                    locked(&deliver)(packet);
                }
            }
        });
        let link = Link {
            server: Arc::clone(self),
            wire: Arc::clone(&wire),
            node,
            up: Mutex::new(Some(up)),
            down,
        };
        (link, wire)
    }

    fn route(&self, packet: Packet) {
        let state = locked(&self.state);
        let fits = |it: &&Subscriber| match it.subject.strip_suffix('*') {
            Some(prefix) => packet.subject.starts_with(prefix),
            None => packet.subject == it.subject,
        };
        let found: Vec<_> = state.subscribers.iter().filter(fits).collect();
        let members: Vec<_> = found.iter().filter(|it| it.group.is_some()).collect();
        let chosen = match members.len() {
            0 => None,
            count => Some(members[below(count as u64) as usize].number),
        };
        let mut is_served = false;
        for subscriber in found {
            if subscriber.group.is_none() || Some(subscriber.number) == chosen {
                is_served = true;
                let down = (Arc::clone(&subscriber.deliver), packet.clone());
                drop(subscriber.down.send(down));
            }
        }
        drop(state);
        if let Some(asker) = packet.reply_to.filter(|_| !is_served) {
            let head = Head {
                fault: Some(Fault::Unserved),
                ..Head::default()
            };
            self.route(Packet {
                subject: asker,
                head,
                ..Packet::default()
            });
        }
    }

    /// Performs a request, which gets lost with its answer if the link is cut.
    fn call<T>(
        &self,
        wire: &Wire,
        limit: Duration,
        f: impl FnOnce(&mut State) -> T,
    ) -> Result<T, NodeError> {
        let end = Instant::now() + limit;
        let late = || NodeError::unavailable("no answer in time");
        let travel = || {
            let way = self.way();
            let arrives = Instant::now() + way;
            thread::sleep(way.min(end.saturating_duration_since(Instant::now())));
            if wire.is_cut() || arrives > end {
                thread::sleep(end.saturating_duration_since(Instant::now()));
                return Err(late());
            }
            Ok(())
        };
        travel()?;
        let result = f(&mut locked(&self.state));
        travel()?;
        Ok(result)
    }

    /// Has a message given to another worker after a while, unless that has been done.
    fn release(&self, (number, attempt): (u64, u64), after: Duration) {
        let mut state = locked(&self.state);
        let items = state.queues.values_mut().flatten();
        for item in items.filter(|it| (it.number, it.attempt) == (number, attempt)) {
            if item.taken.take().is_some() {
                item.due = Instant::now() + after;
            }
        }
    }

    /// Returns how many messages of all queues are left.
    pub(super) fn left(&self) -> usize {
        locked(&self.state).queues.values().map(Vec::len).sum()
    }
}

impl Link {
    fn subscribe(
        &self,
        subject: String,
        group: Option<String>,
        deliver: impl FnMut(Packet) + Send + 'static,
    ) -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, SeqCst);
        locked(&self.server.state).subscribers.push(Subscriber {
            node: self.node,
            number,
            subject,
            group,
            down: self.down.clone(),
            deliver: Arc::new(Mutex::new(deliver)),
        });
        number
    }
}

impl Engine for Link {
    fn publish(&self, packet: Packet) -> Task<Result<(), NodeError>> {
        let up = locked(&self.up).as_ref().map(|up| up.send(packet).is_ok());
        let sent = up.map(drop).ok_or(NodeError::Closed);
        Box::pin(async move { sent })
    }

    fn listen(
        &self,
        subject: String,
        deliver: Box<dyn FnMut(Packet) + Send>,
    ) -> Result<(), NodeError> {
        self.subscribe(subject, None, deliver);
        Ok(())
    }

    fn serve(
        &self,
        subject: String,
        group: Option<String>,
    ) -> Result<Box<dyn Incoming>, NodeError> {
        let (give, packets) = channel();
        let stop = give.clone();
        let number = self.subscribe(subject, group, move |packet| drop(give.send(Some(packet))));
        let server = Arc::clone(&self.server);
        let stop = Arc::new(move || {
            let mut state = locked(&server.state);
            state.subscribers.retain(|it| it.number != number);
            drop(state);
            drop(stop.send(None));
        });
        Ok(Box::new(Received { packets, stop }))
    }

    fn names(&self) -> Box<dyn Names> {
        Box::new(Registry(Arc::clone(&self.server), Arc::clone(&self.wire)))
    }

    fn work(&self, queue: Queue) -> Result<Box<dyn Work>, NodeError> {
        Ok(Box::new(Durable {
            server: Arc::clone(&self.server),
            wire: Arc::clone(&self.wire),
            queue,
        }))
    }

    fn spawn(&self, task: Task<()>) {
        thread::spawn(move || pirn::block_on(task));
    }

    fn until(&self, _: Instant, task: Task<Result<(), NodeError>>) -> Until {
        Box::pin(async move { Some(task.await) })
    }

    fn inbox(&self) -> String {
        format!("inbox.{}", self.node)
    }

    fn is_connected(&self) -> bool {
        !self.wire.is_cut()
    }

    fn dropped(&self) -> u64 {
        0
    }

    fn close(&self) {
        *locked(&self.up) = None;
        let mut state = locked(&self.server.state);
        state.subscribers.retain(|it| it.node != self.node);
    }
}

struct Received {
    packets: Receiver<Option<Packet>>,
    stop: Arc<dyn Fn() + Send + Sync>,
}

impl Incoming for Received {
    fn recv(&mut self) -> Option<Packet> {
        self.packets.recv().ok().flatten()
    }

    fn stop(&self) -> Stop {
        let stop = Arc::clone(&self.stop);
        Box::new(move || stop())
    }
}

struct Registry(Arc<Server>, Arc<Wire>);

impl Registry {
    fn change(
        &self,
        name: &str,
        limit: Duration,
        may: impl FnOnce(Option<&Entry>) -> bool,
        holder: &[u8],
    ) -> Result<u64, NotHeld> {
        let lease = self.0.lease;
        let changed = self.0.call(&self.1, limit, |state| {
            let now = Instant::now();
            state.entries.retain(|_, entry| entry.until > now);
            let found = state.entries.get(name);
            let is_own = found.is_some_and(|entry| entry.holder == holder);
            if !may(found) && !is_own {
                return Err(found.map_or(Vec::new(), |entry| entry.holder.clone()));
            }
            state.revisions += 1;
            let entry = Entry {
                holder: holder.to_vec(),
                revision: state.revisions,
                until: now + lease,
            };
            state.entries.insert(name.to_string(), entry);
            Ok(state.revisions)
        })?;
        changed.map_err(NotHeld::By)
    }
}

impl Names for Registry {
    fn take(&self, name: &str, holder: &[u8], limit: Duration) -> Result<u64, NotHeld> {
        self.change(name, limit, |entry| entry.is_none(), holder)
    }

    fn keep(
        &self,
        name: &str,
        holder: &[u8],
        revision: u64,
        limit: Duration,
    ) -> Result<u64, NotHeld> {
        let may = |entry: Option<&Entry>| entry.is_some_and(|it| it.revision == revision);
        self.change(name, limit, may, holder)
    }

    fn release(&self, name: &str, revision: u64, limit: Duration) {
        let _ = self.0.call(&self.1, limit, |state| {
            state
                .entries
                .retain(|it, entry| it != name || entry.revision != revision);
        });
    }

    fn holder(&self, name: &str, limit: Duration) -> Result<Option<(Vec<u8>, u64)>, NodeError> {
        self.0.call(&self.1, limit, |state| {
            let now = Instant::now();
            state.entries.retain(|_, entry| entry.until > now);
            let found = state.entries.get(name);
            found.map(|entry| (entry.holder.clone(), entry.revision))
        })
    }
}

/// How long the server may take.
const LIMIT: Duration = Duration::from_secs(5);

struct Durable {
    server: Arc<Server>,
    wire: Arc<Wire>,
    queue: Queue,
}

impl Work for Durable {
    fn put(&self, packet: Packet) -> Result<bool, NodeError> {
        self.server.call(&self.wire, LIMIT, |state| {
            let id = packet.head.id.clone().unwrap_or_default();
            let seen = state.seen.entry(self.queue.name.clone()).or_default();
            if seen.contains(&id) {
                return false;
            }
            seen.push(id);
            state.items += 1;
            let item = Item {
                number: state.items,
                packet,
                attempt: 0,
                due: Instant::now(),
                taken: None,
            };
            state
                .queues
                .entry(self.queue.name.clone())
                .or_default()
                .push(item);
            true
        })
    }

    fn take(&self, wait: Duration) -> Result<Option<Box<dyn Job>>, NodeError> {
        let end = Instant::now() + wait;
        loop {
            let mut given = None;
            let taken = self.server.call(&self.wire, LIMIT, |state| {
                let now = Instant::now();
                let items = state.queues.entry(self.queue.name.clone()).or_default();
                let free = |it: &&mut Item| match &it.taken {
                    None => it.due <= now,
                    Some(wire) => wire.is_silent_for(self.queue.patience),
                };
                let item = items.iter_mut().find(free)?;
                item.attempt += 1;
                item.taken = Some(Arc::clone(&self.wire));
                given = Some((item.number, item.attempt));
                Some((item.number, item.packet.clone(), item.attempt))
            });
            let Ok(taken) = taken else {
                // If only the answer got lost, nothing says that the message is at work.
                if let Some(number) = given {
                    self.server.release(number, self.queue.patience);
                }
                return Err(NodeError::unavailable("no answer in time"));
            };
            if let Some((number, packet, attempt)) = taken {
                return Ok(Some(Box::new(AtWork {
                    server: Arc::clone(&self.server),
                    wire: Arc::clone(&self.wire),
                    queue: self.queue.name.clone(),
                    number,
                    packet,
                    attempt,
                })));
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            nap(1500);
        }
    }

    fn dead(&self, most: usize) -> Result<Vec<Packet>, NodeError> {
        self.server.call(&self.wire, LIMIT, |state| {
            let dead = state.dead.get(&self.queue.name);
            dead.into_iter().flatten().take(most).cloned().collect()
        })
    }

    fn len(&self) -> Result<u64, NodeError> {
        self.server.call(&self.wire, LIMIT, |state| {
            state
                .queues
                .get(&self.queue.name)
                .map_or(0, |it| it.len() as u64)
        })
    }
}

struct AtWork {
    server: Arc<Server>,
    wire: Arc<Wire>,
    queue: String,
    number: u64,
    packet: Packet,
    attempt: u64,
}

impl AtWork {
    fn tell(&self, f: impl FnOnce(&mut State)) -> Result<(), NodeError> {
        self.server.call(&self.wire, LIMIT, f)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        // Nothing says any more that it is at work.
        self.server.release((self.number, self.attempt), LIMIT);
    }
}

impl Job for AtWork {
    fn packet(&self) -> &Packet {
        &self.packet
    }

    fn attempt(&self) -> u64 {
        self.attempt
    }

    fn done(self: Box<Self>) -> Result<(), NodeError> {
        self.tell(|state| {
            let items = state.queues.get_mut(&self.queue);
            items
                .into_iter()
                .for_each(|it| it.retain(|it| it.number != self.number));
        })
    }

    fn again(self: Box<Self>, pause: Duration) -> Result<(), NodeError> {
        self.tell(|state| {
            let items = state.queues.get_mut(&self.queue).into_iter().flatten();
            for item in items.filter(|it| it.number == self.number && it.attempt == self.attempt) {
                (item.taken, item.due) = (None, Instant::now() + pause);
            }
        })
    }

    fn bury(self: Box<Self>, why: &str) -> Result<(), NodeError> {
        self.tell(|state| {
            let items = state.queues.get_mut(&self.queue);
            let before = items.as_ref().map_or(0, |it| it.len());
            let mut left = before;
            if let Some(items) = items {
                items.retain(|it| it.number != self.number);
                left = items.len();
            }
            if left < before {
                let mut letter = self.packet.clone();
                letter.head.reason = Some(why.to_string());
                state
                    .dead
                    .entry(self.queue.clone())
                    .or_default()
                    .push(letter);
            }
        })
    }
}
