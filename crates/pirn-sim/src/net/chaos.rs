//! Faults by the seed.

use super::{Node, cut, heal, partition, reset};
use crate::random::{self, Purpose};
use crate::world;
use core::time::Duration;
use std::thread;

/// Plays faults on these nodes for a time: cuts their links in one direction or both and heals
/// them, breaks their connections, and crashes them and starts them again, by the seed. There is a
/// fault every `pause` on average. In the end all links are whole and all nodes run. Returns at
/// once.
///
/// ```no_run
/// # use pirn_sim::net; use std::time::Duration;
/// # let nodes = ["one", "other"].map(|it| net::node(it, || ()));
/// net::chaos(&nodes, Duration::from_secs(5), Duration::from_secs(300));
/// ```
pub fn chaos(nodes: &[Node], pause: Duration, time: Duration) {
    let nodes = nodes.to_vec();
    let seed = world::seed();
    world::spawn_on(world::NOWHERE, move || play(seed, &nodes, pause, time));
}

fn play(seed: u64, nodes: &[Node], pause: Duration, time: Duration) {
    let mut count = 0;
    let mut below = |bound: usize| {
        count += 1;
        random::scaled(random::at(seed, Purpose::Chaos, 0, count), bound as u64) as usize
    };
    let mut left = time;
    while !nodes.is_empty() {
        let next = pause * below(2000) as u32 / 1000;
        if next >= left {
            break;
        }
        thread::sleep(next);
        left -= next;
        let one = below(nodes.len());
        let other = (one + 1 + below(nodes.len().max(2) - 1)) % nodes.len();
        let [one, other] = [&nodes[one], &nodes[other]];
        match below(6) {
            0 => partition(one, other),
            1 => cut(one, other),
            2 | 3 => heal(one, other),
            4 => reset(one, other),
            _ => {
                one.crash();
                one.restart();
            }
        }
    }
    thread::sleep(left);
    for one in nodes {
        nodes.iter().for_each(|other| heal(one, other));
    }
}
