//! The simulated network: nodes with addresses, the links between them, and their faults.
//!
//! A simulated TCP socket is a Unix socket of the kernel's. A connection is two pairs of these with
//! a wire between, two virtual threads that carry the bytes:
//!
//! ```text
//!   client's node                      the link                       server's node
//!   fd of connect() ===== near ->  read, wait, write  -> far ===== fd of accept()
//!                    pair      <-  write, wait, read  <-      pair
//! ```
//!
//! So buffers, readiness, timeouts and flags are the kernel's and the runtime's own. A Unix socket
//! is not TCP: what differs is in the crate's documentation.

mod address;
mod socket;
mod wire;

use crate::random::{self, Purpose};
use crate::{clock, disk, timers, world};
use address::Address;
use core::ffi::{CStr, c_int};
use core::ops::Range;
use core::time::Duration;
use pirn_rt::lock::Lock;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::CString;
use std::net::Ipv4Addr;
use std::sync::Arc;

pub(crate) use socket::Sockets;

/// A machine of the network: its threads, and those that they make, have its address. The test
/// itself, and what it makes, is on a node without a name, 10.0.0.1.
#[derive(Clone)]
pub struct Node {
    number: u32,
    main: Arc<dyn Fn() + Send + Sync>,
}

/// Makes a node with this name, which other nodes can look up, and runs `main` there.
///
/// # Panics
/// Outside of a simulation, and if there is a node of this name.
pub fn node(name: &str, main: impl Fn() + Send + Sync + 'static) -> Node {
    let number = with(|net| {
        assert!(
            !net.nodes
                .iter()
                .any(|it| it.name.to_bytes() == name.as_bytes()),
            "pirn: there is a node {name} already"
        );
        let number = net.nodes.len() as u32;
        net.nodes.push(Host::new(name, number));
        number
    });
    let node = Node {
        number,
        main: Arc::new(main),
    };
    node.start();
    node
}

impl Node {
    /// Returns its address.
    pub fn address(&self) -> Ipv4Addr {
        address::of_node(self.number)
    }

    /// Crashes its process: its threads never go on, nothing is dropped, and the kernel closes its
    /// sockets, so that its peers see an end or a reset. Its [disk](crate::disk) loses what was not
    /// synced. Does not return on the node itself.
    pub fn crash(&self) {
        let own = world::own_node() == self.number;
        world::note_fault(|| format!("node {} crashes", name_of(self.number)));
        world::kill(self.number);
        socket::crash(self.number);
        timers::crash(self.number);
        disk::crash(self.number);
        if own {
            world::leave_for_ever();
        }
    }

    /// Runs its `main` again, after a [crash](Self::crash). What `main` has put into statics is
    /// still there: nodes share them.
    pub fn restart(&self) {
        world::note_fault(|| format!("node {} restarts", name_of(self.number)));
        self.start();
    }

    /// Stops all its threads for a time, as a collector does, or a virtual machine that is moved.
    /// What others send waits in its sockets.
    pub fn pause(&self, time: Duration) {
        world::note_fault(|| format!("node {} pauses for {time:?}", name_of(self.number)));
        world::pause(self.number, clock::now() + time.as_nanos() as u64);
        if world::own_node() == self.number {
            std::thread::yield_now();
        }
    }

    /// Sets its calendar ahead of the others', by so much: `SystemTime` on its threads, not
    /// `Instant`.
    pub fn set_clock_ahead(&self, by: Duration) {
        self.set_skew(by.as_nanos() as i64);
    }

    /// Sets its calendar behind the others', by so much.
    pub fn set_clock_behind(&self, by: Duration) {
        self.set_skew(-(by.as_nanos() as i64));
    }

    fn set_skew(&self, nanos: i64) {
        world::note_fault(|| format!("node {}'s clock is {nanos} ns ahead", name_of(self.number)));
        with(|net| net.nodes[self.number as usize].skew = nanos);
    }

    fn start(&self) {
        let main = Arc::clone(&self.main);
        world::spawn_on(self.number, move || main());
    }
}

/// Sets how long a message takes, from one node to another. Otherwise 0.1 to 1 ms.
pub fn latency(range: Range<Duration>) {
    let nanos = |it: Duration| it.as_nanos() as u64;
    with(|net| net.latency = nanos(range.start)..nanos(range.end));
}

/// Sets the share of messages that are lost, and sent again 200 ms later, then 400 ms, and so on.
pub fn loss(share: f64) {
    with(|net| net.loss = share.clamp(0.0, 0.99));
}

/// Cuts the link between two nodes: what is sent waits until it is [healed](heal).
pub fn partition(one: &Node, other: &Node) {
    cut(one, other);
    cut(other, one);
}

/// Cuts the link in one direction.
pub fn cut(from: &Node, to: &Node) {
    world::note_fault(|| {
        let [from, to] = [from, to].map(|node| name_of(node.number));
        format!("the link from {from} to {to} is cut")
    });
    with(|net| net.cut.insert((from.number, to.number)));
}

/// Heals the link between two nodes, in both directions.
pub fn heal(one: &Node, other: &Node) {
    world::note_fault(|| {
        let [one, other] = [one, other].map(|node| name_of(node.number));
        format!("the link between {one} and {other} is healed")
    });
    with(|net| {
        net.cut.remove(&(one.number, other.number));
        net.cut.remove(&(other.number, one.number));
    });
}

/// A node, as the network knows it.
struct Host {
    name: CString,
    /// Its address as text, which stays: `getaddrinfo` is given it.
    text: &'static CStr,
    /// How many nanoseconds its calendar is ahead.
    skew: i64,
}

impl Host {
    fn new(name: &str, number: u32) -> Host {
        let text = CString::new(address::of_node(number).to_string()).unwrap_or_default();
        Host {
            name: CString::new(name).unwrap_or_default(),
            text: Box::leak(text.into_boxed_c_str()),
            skew: 0,
        }
    }
}

/// A simulated socket, by its descriptor.
#[derive(Clone, Default)]
struct Socket {
    node: u32,
    local: Option<Address>,
    peer: Option<Address>,
    /// The connection is being made, or has failed with this error, which `SO_ERROR` gives once.
    state: State,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    New,
    Listens,
    Connecting,
    Connected,
    Failed(c_int),
}

/// A listener, by its address.
struct Listener {
    /// The name of its Unix socket, in the abstract namespace.
    name: Vec<u8>,
    node: u32,
    fd: c_int,
    /// The clients whose connections the kernel has queued, in this order.
    pending: VecDeque<Address>,
}

struct Network {
    nodes: Vec<Host>,
    sockets: BTreeMap<c_int, Socket>,
    listeners: BTreeMap<Address, Listener>,
    /// The ends of the wires in use, and the nodes that they connect.
    wires: BTreeMap<u64, ([c_int; 2], [u32; 2])>,
    cut: BTreeSet<(u32, u32)>,
    latency: Range<u64>,
    loss: f64,
    next_port: u16,
    /// The number of messages and connections, for what is drawn for each.
    messages: u64,
}

static NETWORK: Lock<Option<Network>> = Lock::new(None);

/// Begins a run: a network with one node, and no socket.
pub(crate) fn reset() {
    let network = Network {
        nodes: vec![Host::new("", 0)],
        sockets: BTreeMap::new(),
        listeners: BTreeMap::new(),
        wires: BTreeMap::new(),
        cut: BTreeSet::new(),
        latency: 100_000..1_000_000,
        loss: 0.0,
        next_port: 40_000,
        messages: 0,
    };
    let old = NETWORK.lock().replace(network);
    drop(old); // Not under the lock.
}

/// Returns whether there is a simulated socket.
pub(crate) fn is_used() -> bool {
    NETWORK
        .lock()
        .as_ref()
        .is_some_and(|it| it.messages > 0 || !it.sockets.is_empty())
}

fn with<R>(f: impl FnOnce(&mut Network) -> R) -> R {
    match NETWORK.lock().as_mut() {
        Some(network) => f(network),
        None => panic!("pirn: the network of a simulation is used where there is none"),
    }
}

impl Network {
    /// Returns how long the next message takes, with the pauses after which lost ones are sent
    /// again.
    fn delay(&mut self) -> u64 {
        self.messages += 1;
        let draw = |what| random::at(world::seed(), Purpose::Message, what, self.messages);
        let span = (self.latency.end - self.latency.start).max(1);
        let mut delay = self.latency.start + random::scaled(draw(0), span);
        let mut again = 200_000_000;
        for attempt in 1..12 {
            if random::share(draw(attempt)) >= self.loss {
                break;
            }
            delay += again;
            again *= 2;
        }
        delay
    }

    /// Returns the address of a socket that has been given none, or a part of one.
    fn complete(&mut self, node: u32, wanted: Option<Address>) -> Address {
        let wanted = wanted.unwrap_or(Address::ANY);
        let port = match wanted.port {
            0 => {
                self.next_port += 1;
                self.next_port
            }
            port => port,
        };
        Address {
            host: address::seen_from(node, wanted.host),
            port,
        }
    }
}

/// Returns how many nanoseconds the calendar of a node is ahead.
pub(crate) fn skew(node: u32) -> i64 {
    let skew = |net: &Network| net.nodes.get(node as usize).map(|it| it.skew);
    NETWORK.lock().as_ref().and_then(skew).unwrap_or(0)
}

/// Returns the name of a node of the run that was last.
pub(crate) fn name_of(node: u32) -> String {
    let name = |net: &Network| match net.nodes.get(node as usize) {
        Some(host) if node > 0 => host.name.to_string_lossy().into_owned(),
        _ if node == world::NOWHERE => "network".to_owned(),
        _ => "test".to_owned(),
    };
    NETWORK.lock().as_ref().map_or_else(String::new, name)
}

/// Waits, as a thread of the simulation.
fn sleep(nanos: u64) {
    std::thread::sleep(Duration::from_nanos(nanos));
}

/// Waits until the link is whole. Returns `false` if it is cut until `patience` is over.
fn wait_for_link(from: u32, to: u32, patience: u64) -> bool {
    let end = clock::now() + patience;
    // As TCP does: ever less often.
    let mut pause = 200_000_000;
    while with(|net| net.cut.contains(&(from, to))) {
        if clock::now() >= end {
            return false;
        }
        sleep(pause);
        pause = (pause * 2).min(60_000_000_000);
    }
    true
}
