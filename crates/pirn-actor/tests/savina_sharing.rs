//! The programs of the Savina benchmark of actors, part two: many who want the same thing. Small
//! sizes: each checks what it computes.

#[path = "actors/common.rs"]
mod common;

use common::{Random, watched};
use pirn_actor::process::{Inbox, Process, RecvError};
use pirn_actor::reply::ReplyTo;
use pirn_actor::{self as actor, AskError, Context, Handler, Ref, receive};
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc;

/// Starts this many actors with the numbers from 0 on, which all do this, and waits for them.
fn all_do(actors: usize, task: impl Fn(usize) + Clone + Send + 'static) {
    let doing: Vec<_> = (0..actors)
        .map(|number| {
            let task = task.clone();
            let actor = actor::function(move |number: usize| task(number));
            let done = actor.ask_later(number).unwrap();
            (actor, done)
        })
        .collect();
    for (_actor, done) in doing {
        assert_eq!(done.recv(), Ok(()));
    }
}

// Concurrent dictionary: some write, and most read.

struct Write(usize, usize);
struct Read(usize);
#[derive(Default)]
struct Dictionary(HashMap<usize, usize>);

impl Handler<Write> for Dictionary {
    type Reply = Option<usize>;
    fn handle(&mut self, Write(key, value): Write, _: &Context<Self>) -> Option<usize> {
        self.0.insert(key, value)
    }
}

impl Handler<Read> for Dictionary {
    type Reply = Option<usize>;
    fn handle(&mut self, Read(key): Read, _: &Context<Self>) -> Option<usize> {
        self.0.get(&key).copied()
    }
}

#[watched]
fn concurrent_dictionary() {
    const WRITERS: usize = 10;
    const KEYS: usize = 100;
    let dictionary = actor::spawn(Dictionary::default());
    let shared = dictionary.clone();
    all_do(WRITERS, move |number| {
        let mut random = Random(number as u64 + 1);
        let mut own = HashMap::new();
        for value in 0..300 {
            let key = random.below(KEYS);
            if value % 10 == 0 {
                // Each has keys of its own.
                let key = key * WRITERS + number;
                let before = own.insert(key, value);
                assert_eq!(shared.ask(Write(key, value)), Ok(before));
            } else {
                shared.ask(Read(key)).unwrap();
            }
        }
        for (key, value) in own {
            assert_eq!(shared.ask(Read(key)), Ok(Some(value)));
        }
    });
    assert!(dictionary.run(|words| words.0.len()).unwrap() > WRITERS);
}

// Bounded buffer: a process that takes what it has room for, and gives what it has.

enum Buffer {
    Put(u64, ReplyTo<()>),
    Get(ReplyTo<u64>),
}

fn buffer(room: usize) -> Process<Buffer, Result<(), RecvError>> {
    actor::process::spawn(move |inbox: &mut Inbox<Buffer>| {
        let mut kept = VecDeque::new();
        loop {
            let (is_full, is_empty) = (kept.len() == room, kept.is_empty());
            receive!(inbox => {
                Buffer::Put(item, reply) if !is_full => {
                    kept.push_back(item);
                    reply.send(());
                }
                Buffer::Get(reply) if !is_empty => reply.send(kept.pop_front().unwrap()),
            });
        }
    })
}

#[watched]
fn bounded_buffer() {
    const ITEMS: u64 = 200;
    let buffer = buffer(5);
    let (tell, told) = mpsc::channel();
    let shared = buffer.clone();
    all_do(8, move |number| {
        for item in 0..ITEMS {
            match number % 2 {
                0 => shared.ask(|reply| Buffer::Put(item, reply)).unwrap(),
                _ => tell.send(shared.ask(Buffer::Get).unwrap()).unwrap(),
            }
        }
    });
    buffer.stop();
    assert_eq!(buffer.into_result(), Ok(Err(RecvError::Stopped)));
    let got: Vec<_> = told.try_iter().collect();
    let expected = 4 * ITEMS * (ITEMS - 1) / 2;
    assert_eq!((got.len() as u64, got.iter().sum()), (4 * ITEMS, expected));
}

// Dining philosophers: an arbiter has the forks.

const SEATS: usize = 5;

#[derive(Default)]
struct Table {
    is_taken: [bool; SEATS],
    meals: [u32; SEATS],
}
struct Hungry(usize);
struct Done(usize);

fn forks(seat: usize) -> [usize; 2] {
    [seat, (seat + 1) % SEATS]
}

impl Handler<Hungry> for Table {
    /// Whether both forks were free.
    type Reply = bool;
    fn handle(&mut self, Hungry(seat): Hungry, _: &Context<Self>) -> bool {
        let is_free = forks(seat).iter().all(|fork| !self.is_taken[*fork]);
        if is_free {
            forks(seat)
                .iter()
                .for_each(|fork| self.is_taken[*fork] = true);
        }
        is_free
    }
}

impl Handler<Done> for Table {
    type Reply = ();
    fn handle(&mut self, Done(seat): Done, _: &Context<Self>) {
        for fork in forks(seat) {
            assert!(self.is_taken[fork]);
            self.is_taken[fork] = false;
        }
        self.meals[seat] += 1;
    }
}

#[watched]
fn dining_philosophers() {
    let table = actor::spawn(Table::default());
    let shared = table.clone();
    all_do(SEATS, move |seat| {
        for _ in 0..100 {
            while !shared.ask(Hungry(seat)).unwrap() {
                pirn::thread::yield_now();
            }
            shared.send(Done(seat)).unwrap();
        }
    });
    let end = table.run(|table| (table.meals, table.is_taken)).unwrap();
    assert_eq!(end, ([100; SEATS], [false; SEATS]));
}

// Sleeping barber: a customer that finds no seat comes again.

struct Shop {
    seats: usize,
    waiting: VecDeque<ReplyTo<u32>>,
    is_busy: bool,
}
enum Visit {
    /// A customer comes in, and gets a number when he is served.
    Customer(ReplyTo<u32>),
    /// The barber is done, and looks for the next one.
    Next,
}

/// Serves the customers that the shop sends, and says so.
fn barber(shop: Process<Visit, Result<(), RecvError>>) -> actor::Address<ReplyTo<u32>> {
    let mut served = 0;
    actor::consumer(move |customer: ReplyTo<u32>| {
        served += 1;
        customer.send(served);
        let _ = shop.send(Visit::Next); // closed by now, perhaps
    })
}

fn shop(seats: usize) -> Process<Visit, Result<(), RecvError>> {
    let (tell, told) = mpsc::channel::<actor::Address<ReplyTo<u32>>>();
    let process = actor::process::spawn(move |inbox: &mut Inbox<Visit>| {
        let barber = told.recv().unwrap();
        let mut shop = Shop {
            seats,
            waiting: VecDeque::new(),
            is_busy: false,
        };
        loop {
            shop.handle(inbox.recv()?, &barber);
        }
    });
    tell.send(barber(process.clone())).unwrap();
    process
}

impl Shop {
    fn handle(&mut self, visit: Visit, barber: &actor::Address<ReplyTo<u32>>) {
        match visit {
            Visit::Customer(customer) if !self.is_busy => {
                self.is_busy = true;
                barber.send(customer).unwrap();
            }
            Visit::Customer(customer) if self.waiting.len() < self.seats => {
                self.waiting.push_back(customer);
            }
            Visit::Customer(customer) => customer.fail("no seat"),
            Visit::Next => match self.waiting.pop_front() {
                Some(customer) => barber.send(customer).unwrap(),
                None => self.is_busy = false,
            },
        }
    }
}

#[watched]
fn sleeping_barber() {
    const CUSTOMERS: usize = 100;
    let shop = shop(3);
    let (tell, told) = mpsc::channel();
    let shared = shop.clone();
    all_do(CUSTOMERS, move |_| {
        loop {
            match shared.ask(Visit::Customer) {
                Ok(served) => return tell.send(served).unwrap(),
                Err(AskError::Failed(why)) => assert_eq!(why.to_string(), "no seat"),
                Err(error) => panic!("{error}"),
            }
            pirn::thread::yield_now();
        }
    });
    shop.kill();
    let mut served: Vec<_> = told.try_iter().collect();
    served.sort();
    assert!(served.into_iter().eq(1..=CUSTOMERS as u32));
}

// Cigarette smokers: each has one ingredient, and the arbiter lays the other two on the table.

#[watched]
fn cigarette_smokers() {
    const ROUNDS: usize = 1000;
    let is_smoking = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let smokers: Vec<_> = (0..3)
        .map(|_| {
            let (is_smoking, mut smoked) = (is_smoking.clone(), 0);
            actor::function(move |()| {
                let ordering = std::sync::atomic::Ordering::SeqCst;
                assert!(!is_smoking.swap(true, ordering), "one at a time");
                smoked += 1;
                pirn::thread::yield_now();
                is_smoking.store(false, ordering);
                smoked
            })
        })
        .collect();
    let arbiter = actor::function(move |rounds: usize| {
        let (mut random, mut smoked) = (Random(5), [0; 3]);
        for _ in 0..rounds {
            let lacks_the_rest = random.below(3);
            smoked[lacks_the_rest] = smokers[lacks_the_rest].ask(()).unwrap();
        }
        smoked
    });
    let smoked = arbiter.ask(ROUNDS).unwrap();
    assert_eq!(smoked.iter().sum::<usize>(), ROUNDS);
    assert!(smoked.iter().all(|smoked| *smoked > 0), "{smoked:?}");
}

// Bank transaction: an account pays another one, and asks it whether it has the money.

struct Account {
    balance: i64,
    others: Vec<Ref<Account>>,
}
struct Pay(usize, i64);
struct Credit(i64);

impl Handler<Credit> for Account {
    type Reply = ();
    fn handle(&mut self, Credit(amount): Credit, _: &Context<Self>) {
        self.balance += amount;
    }
}

impl Handler<Pay> for Account {
    type Reply = Result<(), AskError>;
    fn handle(&mut self, Pay(to, amount): Pay, _: &Context<Self>) -> Self::Reply {
        // It asks in the middle of a payment, as the other one may do. Then one of them fails.
        self.others[to].ask(Credit(amount))?;
        self.balance -= amount;
        Ok(())
    }
}

#[watched]
fn bank_transaction() {
    const ACCOUNTS: usize = 10;
    let accounts: Vec<_> = (0..ACCOUNTS)
        .map(|_| {
            actor::spawn(Account {
                balance: 1000,
                others: Vec::new(),
            })
        })
        .collect();
    for account in &accounts {
        let others = accounts.clone();
        account.run(|account| account.others = others).unwrap();
    }
    let (shared, (tell, told)) = (accounts.clone(), mpsc::channel());
    all_do(8, move |teller| {
        let mut random = Random(teller as u64 + 1);
        for _ in 0..100 {
            let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
            let paid = shared[from].ask(Pay(to, random.below(100) as i64)).unwrap();
            match paid {
                Ok(()) => tell.send(from != to).unwrap(),
                Err(AskError::Deadlock(cycle)) => tell.send(cycle.names().len() > 1).unwrap(),
                Err(error) => panic!("{error}"),
            }
        }
    });
    assert_eq!(told.try_iter().count(), 800);
    let balance = |account: &Ref<Account>| account.run(|account| account.balance).unwrap();
    assert_eq!(
        accounts.iter().map(balance).sum::<i64>(),
        1000 * ACCOUNTS as i64
    );
    accounts.iter().for_each(|actor| actor.stop());
}
