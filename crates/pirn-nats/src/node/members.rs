//! The nodes of a system, as one of them sees it: by their heartbeats, which also tell which of
//! their actors have ended.
//!
//! ```text
//!   unknown --beat--> heard of --no beat for three periods, or "bye"--> unknown, and its actors'
//!                     ^      |                                          monitors are told
//!                     +-beat-+
//! ```
//!
//! A heartbeat is sent at most once, and may get lost. So an end is told again in each beat of the
//! next seconds, and a node that misses all of those has lost the other by then.

use crate::poison::locked;
use core::time::Duration;
use pirn_actor::Exit;
use pirn_actor::error::Failure;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

/// The time between two heartbeats.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);
/// The time without any after which a node is lost.
pub(crate) const LOST: Duration = Duration::from_secs(3);
/// The time for which an end is told.
const TOLD: Duration = Duration::from_secs(10);
/// The number of ends in one heartbeat: far less than a message's size.
pub(crate) const ENDS: usize = 500;

/// A heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Beat {
    pub(crate) node: String,
    pub(crate) name: String,
    /// It is the last one.
    #[serde(default)]
    pub(crate) bye: bool,
    #[serde(default)]
    pub(crate) ends: Vec<End>,
}

/// The end of an actor that the node has served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    actor: u64,
    how: String,
    #[serde(default)]
    why: String,
}

impl End {
    pub(crate) fn new(actor: u64, exit: &Exit) -> End {
        let (how, why) = match exit {
            Exit::Closed => ("closed", String::new()),
            Exit::Stopped => ("stopped", String::new()),
            Exit::Killed => ("killed", String::new()),
            Exit::Failed(failure) => ("failed", failure.to_string()),
            other => ("failed", other.to_string()),
        };
        let how = how.to_string();
        End { actor, how, why }
    }

    fn exit(&self) -> Exit {
        match &*self.how {
            "closed" => Exit::Closed,
            "stopped" => Exit::Stopped,
            "killed" => Exit::Killed,
            _ => Exit::Failed(Failure::new(&*self.why)),
        }
    }
}

/// A node, as [`Node::nodes`](crate::Node::nodes) returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeInfo {
    /// The identity, which no other node has, and none had before.
    pub id: Arc<str>,
    /// The name, for people.
    pub name: Arc<str>,
    /// When it was heard of last.
    pub heard: SystemTime,
}

/// An actor that a node serves: the node's identity, and a number of that node.
pub(crate) type Whom = (Arc<str>, u64);

type Tell = Box<dyn FnOnce(Exit) + Send>;

#[derive(Default)]
pub(crate) struct Members(Mutex<Table>);

#[derive(Default)]
struct Table {
    nodes: HashMap<Arc<str>, Member>,
    ends: HashMap<Whom, (Exit, Instant)>,
    watched: HashMap<Whom, Vec<Tell>>,
    looked: Option<Instant>,
}

struct Member {
    name: Arc<str>,
    heard: Instant,
    at: SystemTime,
}

impl Members {
    /// Notes a heartbeat.
    pub(crate) fn heard(&self, beat: Beat, now: Instant) {
        let node: Arc<str> = beat.node.into();
        let mut over = Vec::new();
        let mut table = locked(&self.0);
        for end in &beat.ends {
            let (whom, exit) = ((Arc::clone(&node), end.actor), end.exit());
            for tell in table.watched.remove(&whom).unwrap_or_default() {
                over.push((tell, exit.clone()));
            }
            table.ends.entry(whom).or_insert((exit, now));
        }
        if beat.bye {
            over.extend(table.lose(&node));
        } else {
            let name = beat.name.into();
            table.hear(node, name, now);
        }
        drop(table);
        tell(over);
    }

    /// Takes the nodes out that have not been heard of for too long.
    pub(crate) fn look(&self, now: Instant) {
        let mut table = locked(&self.0);
        table.ends.retain(|_, (_, at)| now - *at < TOLD);
        let looked = table.looked.replace(now);
        // This process has been stopped for a while: what was sent meanwhile is still to be read.
        if looked.is_some_and(|looked| now - looked > LOST / 2) {
            for member in table.nodes.values_mut() {
                member.heard = now;
            }
        }
        let late = |(node, member): (&Arc<str>, &Member)| {
            (now - member.heard >= LOST).then(|| Arc::clone(node))
        };
        let lost: Vec<_> = table.nodes.iter().filter_map(late).collect();
        let over: Vec<_> = lost.iter().flat_map(|node| table.lose(node)).collect();
        drop(table);
        tell(over);
    }

    /// Has a function told of the end of an actor, or of its node.
    pub(crate) fn watch(&self, whom: Whom, name: Arc<str>, told: Tell, now: Instant) {
        let mut table = locked(&self.0);
        if let Some((exit, _)) = table.ends.get(&whom) {
            let exit = exit.clone();
            drop(table);
            return told(exit);
        }
        if !table.nodes.contains_key(&whom.0) {
            table.hear(Arc::clone(&whom.0), name, now);
        }
        table.watched.entry(whom).or_default().push(told);
    }

    pub(crate) fn nodes(&self) -> Vec<NodeInfo> {
        let info = |(id, member): (&Arc<str>, &Member)| NodeInfo {
            id: Arc::clone(id),
            name: Arc::clone(&member.name),
            heard: member.at,
        };
        let mut nodes: Vec<_> = locked(&self.0).nodes.iter().map(info).collect();
        nodes.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        nodes
    }

    /// Tells everybody: the node that watches is closed.
    pub(crate) fn close(&self) {
        let mut table = locked(&self.0);
        let watched = core::mem::take(&mut table.watched);
        drop(table);
        let tells = watched.into_values().flatten();
        tell(tells.map(|tell| (tell, Exit::NodeLost)).collect());
    }
}

impl Table {
    fn hear(&mut self, node: Arc<str>, name: Arc<str>, heard: Instant) {
        let at = SystemTime::now();
        self.nodes.insert(node, Member { name, heard, at });
    }

    /// Takes a node out. Returns who is to be told.
    fn lose(&mut self, node: &Arc<str>) -> Vec<(Tell, Exit)> {
        self.nodes.remove(node);
        let of_node = self.watched.extract_if(|(of, _), _| of == node);
        let tells = of_node.flat_map(|(_, tells)| tells);
        tells.map(|tell| (tell, Exit::NodeLost)).collect()
    }
}

fn tell(over: Vec<(Tell, Exit)>) {
    for (tell, exit) in over {
        tell(exit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pirn_actor::Monitor;

    fn beat(node: &str, ends: Vec<End>) -> Beat {
        Beat {
            node: node.to_string(),
            name: node.to_string(),
            bye: false,
            ends,
        }
    }

    fn watch(members: &Members, node: &str, actor: u64, now: Instant) -> Monitor {
        let (tell, monitor) = Monitor::new();
        members.watch((node.into(), actor), node.into(), Box::new(tell), now);
        monitor
    }

    #[test]
    fn a_node_is_lost_when_three_beats_are_missing() {
        let (members, start) = (Members::default(), Instant::now());
        members.heard(beat("a", vec![]), start);
        members.heard(beat("b", vec![]), start);
        let monitor = watch(&members, "a", 1, start);
        for tenths in 0..30 {
            let now = start + PERIOD * tenths / 10;
            members.heard(beat("b", vec![]), now);
            members.look(now);
        }
        assert_eq!(monitor.try_recv(), None);
        members.look(start + PERIOD * 3);
        assert_eq!(monitor.try_recv(), Some(Exit::NodeLost));
        assert_eq!(members.nodes().len(), 1);
    }

    #[test]
    fn who_was_stopped_does_not_lose_the_others_for_that() {
        let (members, start) = (Members::default(), Instant::now());
        members.heard(beat("a", vec![]), start);
        members.look(start);
        members.look(start + LOST * 100);
        assert_eq!(members.nodes().len(), 1);
    }

    #[test]
    fn an_end_is_told_to_those_who_watch_already_and_to_those_who_come_later() {
        let (members, now) = (Members::default(), Instant::now());
        let before = watch(&members, "a", 1, now);
        let other = watch(&members, "a", 2, now);
        let failed = Exit::Failed(Failure::new("oh no"));
        members.heard(beat("a", vec![End::new(1, &failed)]), now);
        let after = watch(&members, "a", 1, now);
        assert_eq!(before.try_recv(), Some(failed.clone()));
        assert_eq!(after.try_recv(), Some(failed));
        assert_eq!(other.try_recv(), None);
        let bye = Beat {
            bye: true,
            ..beat("a", vec![End::new(2, &Exit::Closed)])
        };
        members.heard(bye, now);
        assert_eq!(other.try_recv(), Some(Exit::Closed));
        assert_eq!(members.nodes(), []);
    }
}
