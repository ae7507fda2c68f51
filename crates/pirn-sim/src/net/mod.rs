//! The simulated network: nodes with addresses, the links between them, and their faults.
//!
//! A simulated socket is a Unix socket of the kernel's, one of a pair of which the network has the
//! other. So buffers, readiness, timeouts and flags are the kernel's and the runtime's own. The
//! network is no thread: the carrier reads what threads have written, when it looks for the next
//! thread, and puts it on a queue of events by the virtual time at which it arrives. An event
//! hands a message over, by writing it to the other end.
//!
//! ```text
//!   client's node                  the network                     server's node
//!   fd of connect() ===== near ->  look, wait, write  -> far ===== fd of accept()
//!                    pair      <-  write, wait, look  <-      pair
//! ```
//!
//! A Unix socket is not TCP: what differs is in the documentation.

mod address;
mod calls;
mod chaos;
mod connect;
mod events;
mod link;
mod names;
mod options;
mod socket;
mod udp;
mod wire;

use crate::{clock, disk, timers, world};
use core::ffi::{CStr, c_int};
use core::time::Duration;
use events::Events;
use link::Links;
use pirn_rt::lock::Lock;
use socket::Sockets;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Once};
use wire::Wire;

pub(crate) use calls::Calls;
pub use chaos::chaos;
pub(crate) use events::{is_due, looked, next_event, thread_runs};
pub use link::{Link, bandwidth, cut, duplicates, heal, latency, link, loss, partition, reorders};

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
        address::v4_of_node(self.number)
    }

    /// Returns its other address: fd00::2 where the first is 10.0.0.2.
    pub fn address_v6(&self) -> Ipv6Addr {
        address::v6_of_node(self.number)
    }

    /// Crashes its process: its threads never go on, nothing is dropped, and the kernel closes its
    /// sockets, so that its peers see an end or a reset. Its [disk] loses what was not
    /// synced. Does not return on the node itself.
    pub fn crash(&self) {
        self.end(|net, number| net.crash(number));
    }

    /// Crashes the machine: nothing is told to its peers. What they send is lost, and they learn of
    /// it by their timeouts: TCP's after some 15 minutes, or 2 hours and 11 minutes if they wait
    /// with `SO_KEEPALIVE`; or by a reset when it has been [restarted](Self::restart). Does not
    /// return on the node itself.
    pub fn vanish(&self) {
        self.end(|net, number| net.vanish(number));
    }

    fn end(&self, end: impl FnOnce(&mut Network, u32) -> Vec<c_int>) {
        let own = world::own_node() == self.number;
        world::note_fault(|| format!("node {} crashes", name_of(self.number)));
        world::kill(self.number);
        // The network's lock must not be held where the descriptors' is taken.
        for fd in with(|net| end(net, self.number)) {
            let _ = pirn_rt::blocking::fds::close(fd);
        }
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
        with(|net| net.nodes[self.number as usize].is_down = false);
        self.start();
    }

    /// Sets how many sockets the node may have open. More fail with `EMFILE`.
    pub fn descriptors(&self, most: usize) {
        with(|net| net.nodes[self.number as usize].most_sockets = most);
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

/// Breaks all connections between two nodes: both ends get `ECONNRESET`.
pub fn reset(one: &Node, other: &Node) {
    world::note_fault(|| {
        let [one, other] = [one, other].map(|node| name_of(node.number));
        format!("the connections between {one} and {other} are reset")
    });
    with(|net| net.reset_between(one.number, other.number));
}

/// Sets the share of reads and writes of TCP that transfer only a part of what they could.
pub fn short_transfers(share: f64) {
    with(|net| net.shorts = share);
}

/// Sets the share of reads and writes of TCP that fail with `EINTR`, as a signal's handler makes
/// them.
pub fn interrupts(share: f64) {
    with(|net| net.interrupts = share);
}

/// A node, as the network knows it.
struct Host {
    name: &'static CStr,
    /// Its addresses as texts, which stay: `getaddrinfo` is given them.
    texts: [&'static CStr; 2],
    /// The machine has vanished.
    is_down: bool,
    sockets: usize,
    most_sockets: usize,
    /// How many nanoseconds its calendar is ahead.
    skew: i64,
}

impl Host {
    fn new(name: &str, number: u32) -> Host {
        Host {
            name: names::kept(name),
            texts: names::texts(number),
            is_down: false,
            sockets: 0,
            most_sockets: usize::MAX,
            skew: 0,
        }
    }
}

struct Network {
    seed: u64,
    nodes: Vec<Host>,
    sockets: Sockets,
    wires: Vec<Wire>,
    /// Where a message is read.
    buffer: Box<[u8; wire::MESSAGE]>,
    links: Links,
    events: Events,
    next_port: u16,
    /// The number of messages, for what is drawn for each.
    messages: u64,
    /// The number of reads and writes.
    transfers: u64,
    shorts: f64,
    interrupts: f64,
}

static NETWORK: Lock<Option<Network>> = Lock::new(None);

/// Begins a run: a network with one node, and no socket.
pub(crate) fn begin(seed: u64) {
    static ONCE: Once = Once::new();
    ONCE.call_once(raise_limit);
    let network = Network {
        seed,
        nodes: vec![Host::new("", 0)],
        sockets: Sockets::default(),
        wires: Vec::new(),
        buffer: Box::new([0; wire::MESSAGE]),
        links: Links::default(),
        events: Events::new(),
        next_port: 40_000,
        messages: 0,
        transfers: 0,
        shorts: 0.0,
        interrupts: 0.0,
    };
    let old = NETWORK.lock().replace(network);
    // Not under the lock. Threads that were left have the sockets of the last run.
    for fd in old.map(Network::leave).unwrap_or_default() {
        let _ = pirn_rt::blocking::fds::close(fd);
    }
}

/// Lets the process have as many descriptors as it may: a connection takes four.
fn raise_limit() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: room for the limits.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

fn with<R>(f: impl FnOnce(&mut Network) -> R) -> R {
    match NETWORK.lock().as_mut() {
        Some(network) => f(network),
        None => panic!("pirn: the network of a simulation is used where there is none"),
    }
}

impl Network {
    /// Returns whether messages get from one node to another now.
    fn gets_through(&self, from: u32, to: u32) -> bool {
        !self.is_cut(from, to) && !self.nodes[to as usize].is_down
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
