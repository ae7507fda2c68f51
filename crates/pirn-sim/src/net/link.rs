//! The links between nodes: how long messages take, and which are lost.

use super::{Network, Node, name_of, with};
use crate::random::{self, Purpose, share};
use crate::{clock, world};
use core::ops::Range;
use core::time::Duration;

/// The link between two nodes, in both directions, or all links. What is not set for a link is as
/// it is for all.
///
/// ```no_run
/// # use pirn_sim::net; use std::time::Duration;
/// # let [one, other] = ["one", "other"].map(|it| net::node(it, || ()));
/// let ms = Duration::from_millis;
/// net::link(&one, &other).latency(ms(100)..ms(300)).loss(0.05).bandwidth(125_000);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Link(Option<(u32, u32)>);

/// Returns the link between two nodes.
pub fn link(one: &Node, other: &Node) -> Link {
    Link(Some((one.number, other.number)))
}

/// Sets how long a message takes, from one node to another. Otherwise 0.1 to 1 ms.
pub fn latency(range: Range<Duration>) {
    Link(None).latency(range);
}

/// Sets the share of messages that are lost: datagrams for good; what TCP sends is sent again
/// 200 ms later, then 400 ms, and so on.
pub fn loss(share: f64) {
    Link(None).loss(share);
}

/// Sets how many bytes per second go through each link in each direction. Otherwise there is no
/// limit. A link holds the messages of a second at most, and then drops datagrams.
pub fn bandwidth(bytes: u64) {
    Link(None).bandwidth(bytes);
}

/// Sets the share of datagrams that arrive twice.
pub fn duplicates(share: f64) {
    Link(None).duplicates(share);
}

/// Sets the share of datagrams that take up to ten times as long as others, which overtake them.
pub fn reorders(share: f64) {
    Link(None).reorders(share);
}

impl Link {
    /// Sets how long a message takes.
    pub fn latency(self, range: Range<Duration>) -> Link {
        let nanos = |it: Duration| it.as_nanos() as u64;
        self.set(|it| it.latency = Some(nanos(range.start)..nanos(range.end)))
    }

    /// Sets the share of messages that are lost, as [`loss`] does.
    pub fn loss(self, share: f64) -> Link {
        self.set(|it| it.loss = Some(share.clamp(0.0, 1.0)))
    }

    /// Sets how many bytes per second go through, as [`bandwidth`] does.
    pub fn bandwidth(self, bytes: u64) -> Link {
        self.set(|it| it.bandwidth = Some(bytes.max(1)))
    }

    /// Sets the share of datagrams that arrive twice.
    pub fn duplicates(self, share: f64) -> Link {
        self.set(|it| it.duplicates = Some(share))
    }

    /// Sets the share of datagrams that others overtake, as [`reorders`] does.
    pub fn reorders(self, share: f64) -> Link {
        self.set(|it| it.reorders = Some(share))
    }

    fn set(self, set: impl Fn(&mut Settings)) -> Link {
        with(|net| match self.0 {
            None => set(&mut net.links.all),
            Some((one, other)) => {
                set(net.links.some.entry((one, other)).or_default());
                set(net.links.some.entry((other, one)).or_default());
            }
        });
        self
    }
}

/// Cuts the link between two nodes: what is sent waits until it is [healed](heal), and datagrams
/// are lost.
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
    with(|net| net.links.cut.insert((from.number, to.number)));
}

/// Heals the link between two nodes, in both directions.
pub fn heal(one: &Node, other: &Node) {
    world::note_fault(|| {
        let [one, other] = [one, other].map(|node| name_of(node.number));
        format!("the link between {one} and {other} is healed")
    });
    with(|net| {
        net.links.cut.remove(&(one.number, other.number));
        net.links.cut.remove(&(other.number, one.number));
    });
}

/// What is set for a link.
#[derive(Clone, Default)]
struct Settings {
    latency: Option<Range<u64>>,
    loss: Option<f64>,
    bandwidth: Option<u64>,
    duplicates: Option<f64>,
    reorders: Option<f64>,
    /// Until when the messages take that are on the link.
    busy: u64,
}

/// All links.
#[derive(Default)]
pub(super) struct Links {
    all: Settings,
    some: std::collections::BTreeMap<(u32, u32), Settings>,
    cut: std::collections::BTreeSet<(u32, u32)>,
}

impl Network {
    pub(super) fn is_cut(&self, from: u32, to: u32) -> bool {
        self.links.cut.contains(&(from, to))
    }

    /// Returns what is set for a link.
    fn setting<T>(&self, from: u32, to: u32, get: impl Fn(&Settings) -> Option<T>) -> Option<T> {
        let own = self.links.some.get(&(from, to)).and_then(&get);
        own.or_else(|| get(&self.links.all))
    }

    /// Begins a new message, for which numbers are [drawn](Self::drawn).
    fn next_message(&mut self) {
        self.messages += 1;
    }

    /// Returns a number below `bound`, by the seed.
    pub(super) fn drawn_below(&mut self, bound: usize) -> usize {
        self.next_message();
        random::scaled(self.drawn(5), bound as u64) as usize
    }

    fn drawn(&self, what: u32) -> u64 {
        random::at(self.seed, Purpose::Message, what, self.messages)
    }

    /// Returns how long a message of this size takes, without losses. `from`, `to`: its link.
    fn passage(&mut self, from: u32, to: u32, size: usize) -> u64 {
        if from == to {
            return 10_000 + random::scaled(self.drawn(0), 20_000); // Within a machine.
        }
        let range = self
            .setting(from, to, |it| it.latency.clone())
            .unwrap_or(100_000..1_000_000);
        let span = range.end.saturating_sub(range.start).max(1);
        let latency = range.start + random::scaled(self.drawn(0), span);
        latency + self.queue(from, to, size)
    }

    /// Returns how long a message waits for those before it, and takes itself, by the bandwidth.
    fn queue(&mut self, from: u32, to: u32, size: usize) -> u64 {
        let Some(bandwidth) = self.setting(from, to, |it| it.bandwidth) else {
            return 0;
        };
        let link = self.links.some.entry((from, to)).or_default();
        let takes = (size as u64 + 40).saturating_mul(1_000_000_000) / bandwidth;
        link.busy = link.busy.max(clock::now()) + takes;
        link.busy - clock::now()
    }

    /// Returns how long a message of TCP takes, with the pauses after which it is sent again if it
    /// is lost.
    pub(super) fn delay(&mut self, from: u32, to: u32, size: usize) -> u64 {
        self.next_message();
        let mut delay = self.passage(from, to, size);
        let loss = match from == to {
            true => 0.0,
            false => self.setting(from, to, |it| it.loss).unwrap_or(0.0),
        };
        let mut again = 200_000_000;
        for attempt in 1..12 {
            if share(self.drawn(attempt)) >= loss {
                break;
            }
            delay += again;
            again *= 2;
        }
        delay
    }

    /// Returns how long each copy of a datagram takes that arrives.
    pub(super) fn delays(&mut self, from: u32, to: u32, size: usize) -> Vec<u64> {
        /// The most that waits for a slow link, in nanoseconds.
        const QUEUE: u64 = 1_000_000_000;
        self.next_message();
        let of = |net: &Network, get: fn(&Settings) -> Option<f64>| match from == to {
            true => 0.0,
            false => net.setting(from, to, get).unwrap_or(0.0),
        };
        let copies = match share(self.drawn(2)) < of(self, |it| it.duplicates) {
            true => 2,
            false => 1,
        };
        let mut delays = Vec::with_capacity(copies);
        for _ in 0..copies {
            let busy = self.links.some.get(&(from, to)).map_or(0, |it| it.busy);
            if share(self.drawn(1)) < of(self, |it| it.loss) || busy > clock::now() + QUEUE {
                self.next_message();
                continue;
            }
            let mut delay = self.passage(from, to, size);
            if share(self.drawn(3)) < of(self, |it| it.reorders) {
                delay += random::scaled(self.drawn(4), delay.saturating_mul(9));
            }
            delays.push(delay);
            self.next_message();
        }
        delays
    }
}
