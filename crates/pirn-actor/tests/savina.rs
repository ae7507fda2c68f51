//! The programs of the Savina benchmark of actors, part one: messages, and work in parallel. Small
//! sizes: each checks what it computes.

#[path = "actors/common.rs"]
mod common;

use common::{Random, watched};
use pirn_actor::pool::PoolRef;
use pirn_actor::{self as actor, Address, Builder, Context, Exit, Handler, Ref};
use std::sync::{Arc, OnceLock, mpsc};

// Ping-pong: two actors, one message, to and fro.

struct Ping {
    left: u32,
    pong: Ref<Pong>,
    done: mpsc::Sender<u32>,
}
struct Pong(u32);
struct Ball(Address<Back>);
struct Back(u32);

impl Handler<Ball> for Pong {
    type Reply = ();
    fn handle(&mut self, Ball(from): Ball, _: &Context<Self>) {
        self.0 += 1;
        from.send(Back(self.0)).unwrap();
    }
}

impl Handler<Back> for Ping {
    type Reply = ();
    fn handle(&mut self, Back(count): Back, context: &Context<Self>) {
        match self.left {
            0 => self.done.send(count).unwrap(),
            _ => {
                self.left -= 1;
                self.pong.send(Ball(context.this().address())).unwrap();
            }
        }
    }
}

#[watched]
fn ping_pong() {
    let (done, ended) = mpsc::channel();
    let ping = actor::spawn(Ping {
        left: 2000,
        pong: actor::spawn(Pong(0)),
        done,
    });
    ping.send(Back(0)).unwrap();
    assert_eq!(ended.recv(), Ok(2000));
}

// Counting: one actor counts what another one sends.

#[derive(Default)]
struct Counter(u64);
struct Increment;
struct Get;

impl Handler<Increment> for Counter {
    type Reply = ();
    fn handle(&mut self, _: Increment, _: &Context<Self>) {
        self.0 += 1;
    }
}

impl Handler<Get> for Counter {
    type Reply = u64;
    fn handle(&mut self, _: Get, _: &Context<Self>) -> u64 {
        self.0
    }
}

#[watched]
fn counting() {
    let counter = actor::spawn(Counter::default());
    let producer = actor::function(move |count: u64| {
        (0..count).for_each(|_| counter.send(Increment).unwrap());
        counter.ask(Get)
    });
    assert_eq!(producer.ask(20_000), Ok(Ok(20_000)));
}

// Fork-join: messages to many actors in turn, and many actors with a message each.

#[watched]
fn fork_join_throughput() {
    const ACTORS: usize = 30;
    const MESSAGES: usize = 300;
    let (tell, told) = mpsc::channel();
    let actors: Vec<_> = (0..ACTORS)
        .map(|_| {
            let (tell, mut sum) = (tell.clone(), 0);
            actor::consumer(move |n: usize| {
                sum += n;
                if n == MESSAGES {
                    tell.send(sum).unwrap();
                }
            })
        })
        .collect();
    for n in 1..=MESSAGES {
        actors.iter().for_each(|actor| actor.send(n).unwrap());
    }
    actors.iter().for_each(|actor| actor.close());
    assert!(actors.iter().all(|actor| actor.join() == Exit::Closed));
    drop((tell, actors));
    let sums: Vec<_> = told.iter().collect();
    assert_eq!(sums, [MESSAGES * (MESSAGES + 1) / 2; ACTORS]);
}

#[watched]
fn fork_join_create() {
    let (tell, told) = mpsc::channel();
    for n in 0..2000_u64 {
        let tell = tell.clone();
        let actor = actor::consumer(move |n: u64| tell.send(n).unwrap());
        actor.send(n).unwrap(); // handled, although the actor is dropped here
    }
    drop(tell);
    assert_eq!(told.iter().sum::<u64>(), 1999 * 2000 / 2);
}

// Thread ring: a token goes round.

struct Member {
    number: usize,
    next: Arc<OnceLock<Address<u32>>>,
    last: mpsc::Sender<usize>,
}

impl Handler<u32> for Member {
    type Reply = ();
    fn handle(&mut self, hops: u32, _: &Context<Self>) {
        match hops {
            0 => self.last.send(self.number).unwrap(),
            _ => self.next.wait().send(hops - 1).unwrap(),
        }
    }
}

#[watched]
fn thread_ring() {
    const MEMBERS: usize = 100;
    let (last, told) = mpsc::channel();
    let links: Vec<_> = (0..MEMBERS).map(|_| Arc::default()).collect();
    let ring: Vec<_> = (0..MEMBERS)
        .map(|number| {
            actor::spawn(Member {
                number,
                next: Arc::clone(&links[number]),
                last: last.clone(),
            })
        })
        .collect();
    for (number, link) in links.iter().enumerate() {
        let next: &Ref<Member> = &ring[(number + 1) % MEMBERS];
        assert!(link.set(next.address()).is_ok());
    }
    for hops in [0, 1, 99, 100, 5050] {
        ring[0].send(hops).unwrap();
        assert_eq!(told.recv(), Ok(hops as usize % MEMBERS));
    }
    ring.iter().for_each(|actor| actor.stop()); // they keep each other open
}

// Chameneos: creatures meet in pairs, and both take the colour that neither has.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Blue,
    Red,
    Yellow,
}
use Colour::{Blue, Red, Yellow};

impl Colour {
    fn with(self, other: Colour) -> Colour {
        let all = [Blue, Red, Yellow];
        match self == other {
            true => self,
            false => all[3 - self as usize - other as usize],
        }
    }
}

struct Mall {
    left: u32,
    waiting: Option<Meet>,
}
struct Meet(Colour, Address<Option<Colour>>);

impl Handler<Meet> for Mall {
    type Reply = ();
    fn handle(&mut self, second: Meet, _: &Context<Self>) {
        if self.left == 0 {
            // The mall is closed, also for the one who waits.
            for Meet(_, creature) in self.waiting.take().into_iter().chain([second]) {
                creature.send(None).unwrap();
            }
        } else if let Some(first) = self.waiting.take() {
            self.left -= 1;
            first.1.send(Some(second.0)).unwrap();
            second.1.send(Some(first.0)).unwrap();
        } else {
            self.waiting = Some(second);
        }
    }
}

struct Creature {
    colour: Colour,
    mall: Ref<Mall>,
    meetings: u32,
    done: mpsc::Sender<(u32, Colour)>,
}

impl Handler<Option<Colour>> for Creature {
    type Reply = ();
    fn handle(&mut self, other: Option<Colour>, context: &Context<Self>) {
        let Some(other) = other else {
            self.done.send((self.meetings, self.colour)).unwrap();
            return context.stop();
        };
        self.meetings += 1;
        self.colour = self.colour.with(other);
        let this = context.this().address();
        self.mall.send(Meet(self.colour, this)).unwrap();
    }
}

#[watched]
fn chameneos() {
    const MEETINGS: u32 = 1000;
    assert_eq!((Blue.with(Red), Red.with(Yellow)), (Yellow, Blue));
    assert_eq!((Yellow.with(Blue), Red.with(Red)), (Red, Red));
    let mall = actor::spawn(Mall {
        left: MEETINGS,
        waiting: None,
    });
    let (done, ended) = mpsc::channel();
    let creature = |n: usize| {
        let colour = [Blue, Red, Yellow][n % 3];
        let creature = actor::spawn(Creature {
            colour,
            mall: mall.clone(),
            meetings: 0,
            done: done.clone(),
        });
        mall.send(Meet(colour, creature.address())).unwrap();
        creature // kept: without a reference it would be closed
    };
    let creatures: Vec<_> = (0..10).map(creature).collect();
    let met: u32 = creatures.iter().map(|_| ended.recv().unwrap().0).sum();
    assert_eq!(met, 2 * MEETINGS);
}

// Big: everybody sends to everybody.

struct Peer {
    random: Random,
    peers: Arc<OnceLock<Vec<Ref<Peer>>>>,
    left: u32,
    done: mpsc::Sender<()>,
}
struct Hello(Address<Answered>);
struct Answered;

impl Handler<Hello> for Peer {
    type Reply = ();
    fn handle(&mut self, Hello(from): Hello, _: &Context<Self>) {
        from.send(Answered).unwrap();
    }
}

impl Handler<Answered> for Peer {
    type Reply = ();
    fn handle(&mut self, _: Answered, context: &Context<Self>) {
        if self.left == 0 {
            return self.done.send(()).unwrap();
        }
        self.left -= 1;
        let peers = self.peers.wait();
        let peer = &peers[self.random.below(peers.len())];
        peer.send(Hello(context.this().address())).unwrap();
    }
}

#[watched]
fn big() {
    const PEERS: usize = 40;
    let all = Arc::new(OnceLock::new());
    let (done, ended) = mpsc::channel();
    let peers: Vec<_> = (0..PEERS)
        .map(|n| {
            actor::spawn(Peer {
                random: Random(n as u64 + 1),
                peers: Arc::clone(&all),
                left: 100,
                done: done.clone(),
            })
        })
        .collect();
    assert!(all.set(peers.clone()).is_ok());
    peers.iter().for_each(|peer| peer.send(Answered).unwrap());
    (0..PEERS).for_each(|_| ended.recv().unwrap());
    peers.iter().for_each(|actor| actor.stop());
}

// Radix sort: an actor for each bit, which keeps those that have it behind those that do not.

#[watched]
fn radix_sort() {
    const BITS: u32 = 12;
    const NUMBERS: usize = 1000;
    let (tell, told) = mpsc::channel();
    let last = actor::consumer(move |n: usize| tell.send(n).unwrap());
    let sorter = |next: Address<usize>, bit: u32| {
        let (mut seen, mut kept) = (0, Vec::new());
        actor::consumer(move |n: usize| {
            match n >> bit & 1 {
                0 => next.send(n).unwrap(),
                _ => kept.push(n),
            }
            seen += 1;
            if seen == NUMBERS {
                kept.drain(..).for_each(|n| next.send(n).unwrap());
            }
        })
    };
    let first = (0..BITS).rev().fold(last, sorter);
    let mut random = Random(88);
    let mut numbers: Vec<_> = (0..NUMBERS).map(|_| random.below(1 << BITS)).collect();
    numbers.iter().for_each(|n| first.send(*n).unwrap());
    let sorted: Vec<_> = told.iter().take(NUMBERS).collect();
    numbers.sort();
    assert_eq!(sorted, numbers);
}

// Sieve: each actor has some primes, and passes on what none of them divides.

#[derive(Default)]
struct Sieve {
    primes: Vec<u32>,
    next: Option<Ref<Sieve>>,
}
struct Candidate(u32);
struct Collect(Vec<u32>);

impl Handler<Candidate> for Sieve {
    type Reply = ();
    fn handle(&mut self, Candidate(n): Candidate, _: &Context<Self>) {
        if self.primes.iter().any(|prime| n.is_multiple_of(*prime)) {
            return;
        }
        if self.primes.len() < 20 {
            return self.primes.push(n);
        }
        let next = self
            .next
            .get_or_insert_with(|| actor::spawn(Sieve::default()));
        next.send(Candidate(n)).unwrap();
    }
}

impl Handler<Collect> for Sieve {
    type Reply = Vec<u32>;
    fn handle(&mut self, Collect(mut before): Collect, _: &Context<Self>) -> Vec<u32> {
        before.append(&mut self.primes);
        match &self.next {
            None => before,
            Some(next) => next.ask(Collect(before)).unwrap(),
        }
    }
}

#[watched]
fn sieve_of_primes() {
    let first = actor::spawn(Sieve::default());
    (2..2000).for_each(|n| first.send(Candidate(n)).unwrap());
    let primes = first.ask(Collect(Vec::new())).unwrap();
    let is_prime = |n: &u32| {
        (2..*n)
            .take_while(|d| d * d <= *n)
            .all(|d| !n.is_multiple_of(d))
    };
    let expected: Vec<_> = (2..2000).filter(is_prime).collect();
    assert_eq!((primes.len(), primes), (303, expected));
}

// N queens: workers of a pool send their own pool what is to be looked at.

struct Queens {
    pool: Arc<OnceLock<PoolRef<Queens>>>,
    told: mpsc::Sender<Found>,
}

/// Queens in the first rows, by their columns.
struct Board(Vec<u8>);

enum Found {
    Solution,
    /// A board has been looked at, which is worth so many others.
    Looked(usize),
}

const QUEENS: u8 = 8;

impl Handler<Board> for Queens {
    type Reply = ();
    fn handle(&mut self, Board(queens): Board, _: &Context<Self>) {
        let row = queens.len();
        if row == usize::from(QUEENS) {
            self.told.send(Found::Solution).unwrap();
        }
        let hits = |column: u8| {
            let mut before = queens.iter().enumerate();
            before.any(|(at, queen)| {
                let distance = usize::from(queen.abs_diff(column));
                distance == 0 || distance == row - at
            })
        };
        let last = if row == usize::from(QUEENS) {
            0
        } else {
            QUEENS
        };
        let free: Vec<_> = (0..last).filter(|column| !hits(*column)).collect();
        // Before others find the first of them, so that the count is never too low.
        self.told.send(Found::Looked(free.len())).unwrap();
        for column in &free {
            let next = queens.iter().chain([column]).copied().collect();
            self.pool.wait().send(Board(next)).unwrap();
        }
    }
}

#[watched]
fn n_queens() {
    let (pool, (told, tells)) = (Arc::new(OnceLock::new()), mpsc::channel());
    let known = Arc::clone(&pool);
    let recipe = move || Queens {
        pool: Arc::clone(&known),
        told: told.clone(),
    };
    // A worker must not wait for room that only workers make.
    let workers = Builder::new()
        .unbounded()
        .pool(4..=4)
        .spawn(recipe)
        .unwrap();
    assert!(pool.set(workers.clone()).is_ok());
    workers.send(Board(Vec::new())).unwrap();
    let (mut solutions, mut boards) = (0, 1);
    while boards > 0 {
        match tells.recv().unwrap() {
            Found::Solution => solutions += 1,
            Found::Looked(more) => boards = boards - 1 + more,
        }
    }
    assert_eq!(solutions, 92);
    workers.stop();
}

#[watched]
fn a_chain_that_is_made_as_it_goes() {
    let (tell, told) = mpsc::channel();
    let last = Builder::new().consumer(move |n: u32| tell.send(n).unwrap());
    let first = (0..500).fold(last, |next, _| {
        actor::consumer(move |n: u32| next.send(n + 1).unwrap())
    });
    first.send(0).unwrap();
    assert_eq!(told.recv(), Ok(500));
}
