//! A mixed day for one server: polite clients of HTTP/1.1, TLS, HTTP/2 and WebSockets, which check
//! that each answer is theirs; beside them clients that are slow, that hang up in the middle, and
//! that send what is no request.
//!
//! It runs for a second, or for `PIRN_STRESS_HTTP_SECONDS`. From a minute on it looks at the memory
//! as well: [`memory`] says how. `ci/http-soak` runs it for an hour.

mod gone;
mod http2;
mod memory;
mod plain;
mod server;
mod slow;
mod socket;
mod wire;

use pirn::thread;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A client's life: it is called over and over again, and panics at an answer that is wrong.
type Client = fn(&mut Day);

/// What clients do, and how many of them do that at the same time.
const CLIENTS: [(&str, usize, Client); 8] = [
    ("plain", 4, plain::plain),
    ("tls", 3, plain::tls),
    ("http2", 2, http2::clients),
    ("sockets", 3, socket::client),
    ("slow", 8, slow::patient),
    ("stalled", 4, slow::stalled),
    ("gone", 4, gone::client),
    ("nonsense", 2, gone::nonsense),
];

/// What all clients share.
struct World {
    server: server::Address,
    /// The next request's number.
    next: AtomicU64,
    is_over: AtomicBool,
    /// How many answers were checked, by what they were to.
    answers: Mutex<BTreeMap<&'static str, u64>>,
}

/// One client's view of the world.
struct Day {
    world: Arc<World>,
    random: u64,
}

impl Day {
    /// Returns a number that no other request has.
    fn number(&self) -> u64 {
        self.world.next.fetch_add(1, Relaxed)
    }

    /// Returns a random number below `end`: xorshift.
    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % end
    }

    /// Returns the length of a body: mostly small, and up to half a megabyte.
    fn length(&mut self) -> u64 {
        let most = [0, 100, 5_000, 20_000, 70_000, 500_000][self.below(6) as usize];
        self.below(most + 1)
    }

    fn sleep(&mut self, most_ms: u64) {
        thread::sleep(Duration::from_millis(self.below(most_ms + 1)));
    }

    /// Notes that an answer was as it must be.
    fn checked(&self, what: &'static str) {
        *self.world.answers.lock().unwrap().entry(what).or_default() += 1;
    }

    fn is_over(&self) -> bool {
        self.world.is_over.load(Relaxed)
    }
}

/// Whatever panics, even where the client that causes it is gone, ends the day, and fails the test.
fn count_panics(world: &Arc<World>) -> Arc<AtomicU64> {
    let panics = Arc::new(AtomicU64::new(0));
    let (count, world) = (Arc::clone(&panics), Arc::clone(world));
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        count.fetch_add(1, Relaxed);
        world.is_over.store(true, Relaxed);
        print(info);
    }));
    panics
}

fn seconds() -> u64 {
    let seconds = std::env::var("PIRN_STRESS_HTTP_SECONDS").ok();
    seconds.map_or(1, |text| text.parse().expect("a number of seconds"))
}

/// Has all clients do what they do until the time is up; at least once.
fn live(world: &Arc<World>, length: Duration) -> Vec<u64> {
    let end = Instant::now() + length;
    let mut clients = Vec::new();
    for (kind, count, client) in CLIENTS {
        for index in 0..count {
            let mut day = Day {
                world: Arc::clone(world),
                random: 0x9e37_79b9_7f4a_7c15 ^ ((clients.len() as u64 + 1) << 32),
            };
            let named = thread::Builder::new().name(format!("{kind} {index}"));
            let life = move || {
                client(&mut day);
                while !day.is_over() {
                    client(&mut day);
                }
            };
            clients.push(named.spawn(life).unwrap());
        }
    }
    let samples = memory::sample(end, length, &world.is_over);
    world.is_over.store(true, Relaxed);
    for client in clients {
        let _ = client.join(); // A panic has been counted.
    }
    samples
}

#[test]
fn each_client_gets_its_own_answers_while_others_misbehave_and_memory_stays_flat() {
    let length = Duration::from_secs(seconds());
    let (running, address) = server::start(length);
    let world = Arc::new(World {
        server: address,
        next: AtomicU64::new(1),
        is_over: AtomicBool::new(false),
        answers: Mutex::default(),
    });
    let panics = count_panics(&world);
    let samples = live(&world, length);
    let answers = world.answers.lock().unwrap().clone();
    println!("answers: {answers:?}");
    assert_eq!(panics.load(Relaxed), 0, "there was a panic");
    for what in [
        "echo",
        "pipeline",
        "upload",
        "chunked",
        "download",
        "range",
        "http2",
        "reset",
        "message",
        "slow head",
        "slow body",
        "slow reader",
        "408",
        "refused",
        "hung up",
    ] {
        assert!(answers.contains_key(what), "no {what} in {answers:?}");
    }
    assert_eq!(running.shutdown(), 0, "connections that did not end");
    let growth = memory::growth(&samples);
    println!("memory has grown by {} KiB", growth >> 10);
    assert!(growth <= memory::BOUND, "memory grows by {growth} bytes");
}
