//! Circles in which one waits for several, or for one of several; and waits that are over, which
//! are in no circle.

use crate::common::{Gate, until, watched};
use pirn_actor::address::WeakAddress;
use pirn_actor::error::Refusal;
use pirn_actor::pool::{Pool, PoolRef};
use pirn_actor::{
    self as actor, Address, AskError, Builder, Context, Function, Handler, Overflow, Ref,
};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

type Answer = Result<u32, AskError>;

/// An actor's address, for one that is made before it.
#[derive(Clone, Default)]
struct Later(Arc<OnceLock<WeakAddress<u32, Answer>>>);

impl Later {
    fn set(&self, address: &Address<u32, Answer>) {
        self.0.set(address.downgrade()).unwrap();
    }

    fn ask(&self, n: u32) -> Answer {
        self.0.wait().upgrade().ok_or(AskError::Gone)?.ask(n)?
    }
}

fn named(name: &str, f: impl FnMut(u32) -> Answer + Send + 'static) -> Address<u32, Answer> {
    Builder::new().name(name).function(f)
}

/// Waits until the actor with the first name waits for the one with the second.
fn until_waits(name: &str, to: &str) {
    until(|| {
        let waits = |actor: &actor::snapshot::ActorInfo| {
            &*actor.name == name && actor.waits_for.as_deref() == Some(to)
        };
        actor::snapshot::take().iter().any(waits)
    });
}

fn cycle(answer: Answer) -> String {
    let Err(AskError::Deadlock(cycle)) = answer else {
        panic!("no deadlock: {answer:?}")
    };
    cycle.to_string()
}

#[watched]
fn a_circle_through_an_earlier_stage_of_a_pipeline_is_found() {
    for stages in 2..5 {
        for asks_back in 0..stages {
            let asker = Later::default();
            let stage = |n| {
                let asker = asker.clone();
                Builder::new()
                    .name(format!("stage-{n}"))
                    .function(move |answer: Answer| match n == asks_back {
                        true => asker.ask(answer?),
                        false => answer,
                    })
            };
            let line = (1..stages).fold(stage(0), |line, n| line.then(stage(n)));
            let asks = named("asker", move |n| line.ask(Ok(n))?);
            asker.set(&asks);
            // The thread that begins to wait last finds it.
            let stage = format!("stage-{asks_back}");
            let ways = [
                format!("{stage} waits for asker waits for {stage}"),
                format!("asker waits for {stage} waits for asker"),
            ];
            let found = cycle(asks.ask(1).unwrap());
            assert!(ways.contains(&found), "{found}");
        }
    }
}

#[watched]
fn a_stage_that_has_handed_the_message_on_is_not_waited_for_any_more() {
    let (asker, gate) = (Later::default(), Gate::new());
    let (asks, blocked) = (asker.clone(), gate.clone());
    let early = named("handed-on", move |n| match n {
        0 => Ok(0),
        n => asks.ask(n),
    });
    let late = Builder::new().name("late").function(move |answer| {
        blocked.wait();
        answer
    });
    let line = early.then(&late);
    let asks = named("asks-line", move |n| match n {
        0 => line.ask(0)?,
        n => Ok(n),
    });
    asker.set(&asks);
    let first = asks.ask_later(0).unwrap();
    until_waits("asks-line", "late");
    let second = early.ask_later(7).unwrap();
    until_waits("handed-on", "asks-line");
    gate.open();
    assert_eq!((first.recv(), second.recv()), (Ok(Ok(0)), Ok(Ok(7))));
}

/// Asks its pool, at the same time as others do.
struct Nested {
    pool: Arc<OnceLock<PoolRef<Nested>>>,
    together: Arc<Barrier>,
}

impl Handler<u32> for Nested {
    type Reply = Answer;
    fn handle(&mut self, depth: u32, _: &Context<Self>) -> Answer {
        if depth == 0 {
            return Ok(0);
        }
        self.together.wait();
        self.pool.wait().ask(depth - 1)?.map(|n| n + 1)
    }
}

/// A pool of which so many meet before they ask it.
fn nested(pool: &Pool, meet: usize) -> PoolRef<Nested> {
    let (own, together) = (Arc::new(OnceLock::new()), Arc::new(Barrier::new(meet)));
    let known = Arc::clone(&own);
    let recipe = move || Nested {
        pool: Arc::clone(&own),
        together: Arc::clone(&together),
    };
    let pool = pool.spawn(recipe).unwrap();
    known.set(pool.clone()).unwrap();
    pool
}

#[watched]
fn workers_that_all_ask_their_own_pool_are_a_circle() {
    for workers in [2, 3, 8] {
        let pool = nested(&Builder::new().name("all").pool(workers..=workers), workers);
        let asked: Vec<_> = (0..workers).map(|_| pool.ask_later(1).unwrap()).collect();
        let answers = asked.into_iter().map(|reply| reply.recv().unwrap());
        let (answered, failed): (Vec<_>, Vec<_>) = answers.partition(Result::is_ok);
        // The last one fails, and is free for the others' messages.
        assert_eq!((answered.len(), failed.len()), (workers - 1, 1));
        let way = cycle(failed.into_iter().next().unwrap());
        let last = way.split(' ').next().unwrap();
        assert_eq!(way, format!("{last} waits for all waits for {last}"));
        pool.stop();
    }
}

#[watched]
fn a_pool_with_a_free_worker_or_room_for_another_one_is_no_circle() {
    let free = nested(&Pool::fixed(4), 3);
    let grows = nested(&Pool::scaling(3..=4).grow_at(1), 3);
    for pool in [free, grows] {
        for _ in 0..20 {
            let asked: Vec<_> = (0..3).map(|_| pool.ask_later(1).unwrap()).collect();
            for reply in asked {
                assert_eq!(reply.recv(), Ok(Ok(1)));
            }
        }
        pool.stop();
    }
}

#[watched]
fn a_pool_that_would_grow_if_more_came_is_no_circle() {
    let pool = nested(&Builder::new().name("grows").pool(2..=3).grow_at(3), 2);
    let asked = [pool.ask_later(1).unwrap(), pool.ask_later(1).unwrap()];
    until(|| pool.len() == 2);
    until_waits("grows/1", "grows");
    until_waits("grows/2", "grows");
    assert_eq!(pool.ask(0), Ok(Ok(0)));
    assert_eq!(asked.map(|reply| reply.recv()), [Ok(Ok(1)), Ok(Ok(1))]);
    pool.stop();
}

#[watched]
fn a_circle_through_all_workers_and_an_actor_outside_is_found() {
    for _ in 0..20 {
        let outside = Later::default();
        let (asks, together) = (outside.clone(), Arc::new(Barrier::new(2)));
        let recipe = move || {
            let (asks, together) = (asks.clone(), Arc::clone(&together));
            Function::new(move |n: u32| match n {
                0 => Ok(0),
                n => {
                    together.wait();
                    asks.ask(n)
                }
            })
        };
        let pool = Builder::new()
            .name("crew")
            .pool(2..=2)
            .spawn(recipe)
            .unwrap();
        let inner = pool.address::<u32>();
        let asks_inside = named("outside", move |n| inner.ask(n - 1)?);
        outside.set(&asks_inside);
        let asked = [pool.ask_later(1).unwrap(), pool.ask_later(1).unwrap()];
        let answers = asked.map(|reply| reply.recv().unwrap());
        // The thread that closes the circle fails, and the other one is answered.
        let failed = answers.iter().filter(|answer| answer.is_err());
        assert_eq!(failed.count(), 1, "{answers:?}");
        assert!(answers.contains(&Ok(0)), "{answers:?}");
        pool.stop();
    }
}

#[watched]
fn circles_of_others_end_no_search() {
    // The one gives up in an hour, so the other's ask is no deadlock; but it is a circle.
    let (gate, other) = (Gate::new(), Later::default());
    let (blocked, asks) = (gate.clone(), other.clone());
    let patient = named("patient", move |n| match n {
        0 => {
            blocked.wait();
            asks.ask(0)
        }
        n => Ok(n),
    });
    let asked = patient.clone();
    let hasty = named("hasty", move |n| match n {
        0 => Ok(0),
        n => asked.ask_timeout(n, Duration::from_secs(3600))?,
    });
    other.set(&hasty);
    let begun = patient.ask_later(0).unwrap();
    let limited = hasty.ask_later(1).unwrap();
    until_waits("hasty", "patient");
    gate.open();
    until_waits("patient", "hasty");
    let third = hasty.clone();
    let third = named("third", move |n| {
        third.ask_timeout(n, Duration::from_millis(1))?
    });
    assert_eq!(third.ask(0), Ok(Err(AskError::TimedOut)));
    hasty.kill();
    patient.kill();
    drop((begun, limited));
}

#[watched]
fn a_wait_that_is_over_is_in_no_circle() {
    for _ in 0..50 {
        let (gate, first) = (Gate::new(), Later::default());
        let (blocked, asks) = (gate.clone(), first.clone());
        let second = named("answers", move |n| match n {
            0 => {
                blocked.wait();
                Ok(0)
            }
            1 => Ok(1),
            n => asks.ask(n),
        });
        let asked = second.clone();
        let asks = named("asks", move |n| match n {
            1 => asked.ask(1)?,
            n => Ok(n),
        });
        first.set(&asks);
        let begun = second.ask_later(0).unwrap();
        let one = asks.ask_later(1).unwrap();
        until_waits("asks", "answers");
        // Handled at once after the answer, which its asker may not have seen by then.
        let two = second.ask_later(2).unwrap();
        gate.open();
        let answers = [begun.recv(), one.recv(), two.recv()];
        assert_eq!(answers, [Ok(Ok(0)), Ok(Ok(1)), Ok(Ok(2))]);
    }
}

/// Sends what it gets to a mailbox that is full, but for a 3.
struct Sends(Address<u32, Answer>);

impl Handler<u32> for Sends {
    type Reply = Result<(), Refusal>;
    fn handle(&mut self, n: u32, _: &Context<Self>) -> Self::Reply {
        match n {
            3 => Ok(()),
            n => self.0.send(n).map_err(|error| error.refusal().clone()),
        }
    }
}

/// An actor that waits at the gates, and at a 1 asks another one.
fn asks_in_time(capacity: usize, gates: [Gate; 2]) -> (Address<u32, Answer>, Ref<Sends>) {
    let sender = Arc::new(OnceLock::<Ref<Sends>>::new());
    let asks = Arc::clone(&sender);
    let full = Builder::new().name("full").capacity(capacity);
    let full = full.function(move |n: u32| {
        match n {
            1 => asks.wait().ask(3)?.map_err(AskError::from)?,
            8 => gates[0].wait(),
            9 => gates[1].wait(),
            _ => {}
        }
        Ok(n)
    });
    let sends = Sends(full.clone());
    let sends = Builder::new().name("sends").spawn_with(sends);
    assert!(sender.set(sends.clone()).is_ok());
    (full, sends)
}

#[watched]
fn a_wait_for_room_that_is_over_is_in_no_circle() {
    for capacity in [2, 64] {
        for _ in 0..50 {
            let gates = [Gate::new(), Gate::new()];
            let (full, sends) = asks_in_time(capacity, gates.clone());
            let first = full.ask_later(8).unwrap();
            until(|| full.is_empty());
            // Both are taken up together, and there is nothing to look at between them.
            let replies = [9, 1].map(|n| full.ask_later(n).unwrap());
            gates[0].open();
            assert_eq!(first.recv(), Ok(Ok(8)));
            until(|| full.len() == 1);
            (1..capacity).for_each(|_| full.send(5).unwrap());
            let sent = sends.ask_later(2).unwrap();
            until_waits("sends", "full");
            // The sender is let in by the room of the message that asks it.
            gates[1].open();
            assert_eq!(replies.map(|reply| reply.recv()), [Ok(Ok(9)), Ok(Ok(1))]);
            assert_eq!(sent.recv(), Ok(Ok(())));
            sends.stop();
            full.stop();
        }
    }
}

#[watched]
fn an_actor_that_was_killed_is_in_no_circle() {
    for _ in 0..200 {
        let (own, (tell, told)) = (Later::default(), channel());
        let later = own.clone();
        let kills = named("kills", move |n| {
            let waits = later.0.wait().upgrade().unwrap();
            let reply = waits.ask_later(n).unwrap();
            waits.kill();
            tell.send(reply.recv()).unwrap();
            Ok(n)
        });
        let waits = named("waits", move |n| kills.ask(n)?);
        own.set(&waits);
        waits.send(1).unwrap();
        assert_eq!(told.recv().unwrap(), Err(AskError::Gone));
    }
}

/// What an actor gets whose mailbox is full.
enum Message {
    /// Says that it has begun, and waits until the gate is open.
    Stay(Gate, Gate),
    /// Says that it is being dropped, and waits.
    Held(Held),
    /// Asks back.
    Back(Address<u32, Answer>),
}

struct Held(Gate, Gate);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.open();
        self.1.wait();
    }
}

/// A state that handles those, and tells what it has heard when it asked back.
fn asks_back(tell: Sender<Answer>) -> Function<impl FnMut(Message) -> Answer + Send> {
    Function::new(move |message| {
        match message {
            Message::Stay(begins, gate) => {
                begins.open();
                gate.wait();
            }
            Message::Held(held) => drop(held),
            Message::Back(asker) => tell.send(asker.ask(1).flatten()).unwrap(),
        }
        Ok(0)
    })
}

/// Has an actor ask through `way`, so that `full` gets the request, which has room for one message.
/// The next message displaces it, and asks the actor, while the request is still being dropped. No
/// other test has the name of `full`: they run at the same time.
fn displaces(
    full: &Address<Message, Answer>,
    way: &Address<Message, Answer>,
    told: &Receiver<Answer>,
) {
    let [begins, stays, drops, dropped] = [(); 4].map(|()| Gate::new());
    full.send(Message::Stay(begins.clone(), stays.clone()))
        .unwrap();
    begins.wait();
    let held = Held(drops.clone(), dropped.clone());
    let name = format!("asks {}", full.name());
    let (way, mut held) = (way.clone(), Some(held));
    let asks = named(&name, move |n| match held.take() {
        Some(held) => way.ask(Message::Held(held))?,
        None => Ok(n),
    });
    let asked = asks.ask_later(0).unwrap();
    until_waits(&name, &full.name());
    let (full, asker) = (full.clone(), asks.clone());
    let sent = pirn::thread::spawn(move || full.send(Message::Back(asker)).unwrap());
    drops.wait();
    stays.open();
    assert_eq!(told.recv().unwrap(), Ok(1));
    assert_eq!(asked.recv(), Ok(Err(AskError::Gone)));
    dropped.open();
    sent.join().unwrap();
}

#[watched]
fn an_asker_whose_request_is_displaced_is_in_no_circle() {
    let (tell, told) = channel();
    let builder = || Builder::new().name("full row").capacity(1);
    let full = builder()
        .overflow(Overflow::DropOld)
        .spawn_with(asks_back(tell.clone()));
    displaces(&full.address(), &full.address(), &told);

    let second = actor::function(|answer: Answer| answer);
    let full = builder()
        .overflow(Overflow::DropOld)
        .spawn_with(asks_back(tell));
    displaces(&full.address(), &full.address().then(&second), &told);
}

#[watched]
fn an_asker_whose_request_is_displaced_from_a_pool_is_in_no_circle() {
    let (tell, told) = channel();
    let builder = Builder::new().name("full pool").capacity(1);
    let pool = builder.overflow(Overflow::DropOld).pool(1..=1);
    let full = pool.spawn(move || asks_back(tell.clone())).unwrap();
    displaces(&full.address(), &full.address(), &told);
}
