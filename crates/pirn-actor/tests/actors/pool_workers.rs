//! What the workers of a pool are: actors, with deadlines, deadlocks, messages to themselves.

use crate::common::{Gate, until, watched};
use crate::pools::{counted, keep_busy};
use pirn_actor::pool::{Pool, PoolRef};
use pirn_actor::{self as actor, AskError, Builder, Context, Exit, Function, Handler};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

#[watched]
fn asks_that_nobody_waits_for_are_skipped() {
    let handled = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&handled);
    let pool = Pool::fixed(1)
        .keyed(|_: &Gate| ())
        .weighted(1, |_: &Gate| 1);
    let pool = pool
        .spawn(move || {
            let counts = Arc::clone(&counts);
            Function::new(move |gate: Gate| {
                counts.fetch_add(1, Ordering::SeqCst);
                gate.wait();
            })
        })
        .unwrap();
    let gate = Gate::new();
    let first = pool.ask_later(gate.clone()).unwrap();
    until(|| pool.workers().busy == 1);
    let late = pool.ask_timeout(gate.clone(), Duration::from_millis(5));
    assert_eq!(late, Err(AskError::TimedOut));
    drop(pool.ask_later(gate.clone()).unwrap());
    gate.open();
    assert_eq!(first.recv(), Ok(()));
    assert_eq!(pool.ask(gate), Ok(()));
    assert_eq!(handled.load(Ordering::SeqCst), 2);
}

#[watched]
fn deadlines_travel_through_a_pool() {
    struct Asks(actor::Address<()>);
    impl Handler<()> for Asks {
        type Reply = Option<Result<(), AskError>>;
        fn handle(&mut self, (): (), context: &Context<Self>) -> Self::Reply {
            context.deadline().map(|_| self.0.ask(()))
        }
    }
    let gate = Gate::new();
    let blocked = gate.clone();
    let slow = actor::consumer(move |()| blocked.wait());
    let pool = Pool::fixed(2).spawn(move || Asks(slow.clone())).unwrap();
    // The worker gives up with its asker. Nothing else lets it end.
    match pool.ask_timeout((), Duration::from_millis(5)) {
        Err(AskError::TimedOut) | Ok(Some(Err(AskError::TimedOut))) => {}
        other => panic!("{other:?}"),
    }
    until(|| pool.workers().busy == 0);
    gate.open();
}

#[watched]
fn a_pool_of_one_that_asks_itself_is_a_deadlock_and_one_of_two_is_not() {
    struct Nested(OnceLock<PoolRef<Nested>>);
    struct Know(PoolRef<Nested>);
    impl Handler<Know> for Nested {
        type Reply = ();
        fn handle(&mut self, Know(pool): Know, _: &Context<Self>) {
            let _ = self.0.set(pool);
        }
    }
    impl Handler<u32> for Nested {
        type Reply = Result<u32, AskError>;
        fn handle(&mut self, depth: u32, _: &Context<Self>) -> Self::Reply {
            match (depth, self.0.get()) {
                (0, _) => Ok(0),
                (_, Some(pool)) => pool.ask(depth - 1)?.map(|depth| depth + 1),
                (_, None) => Ok(100), // the other worker knows
            }
        }
    }
    let one = Builder::new()
        .name("one")
        .pool(1..=1)
        .spawn(|| Nested(Default::default()))
        .unwrap();
    one.ask(Know(one.clone())).unwrap();
    let Ok(Err(AskError::Deadlock(cycle))) = one.ask(1) else {
        panic!("no deadlock")
    };
    assert_eq!(cycle.to_string(), "one/1 waits for one/1");
    one.stop();
    let two = Pool::fixed(2).spawn(|| Nested(Default::default())).unwrap();
    two.ask(Know(two.clone())).unwrap();
    let answers: Vec<_> = (0..10).map(|_| two.ask(1)).collect();
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Ok(Ok(1 | 100))))
    );
    two.stop();
}

/// Sends itself messages, and asks its pool at such a message.
struct Alarmed(PoolRef<Adds>, mpsc::Sender<u32>);
type Adds = Function<fn(u32) -> u32>;
struct Alarm;

impl Handler<u32> for Alarmed {
    type Reply = ();
    fn handle(&mut self, _: u32, context: &Context<Self>) {
        context.this().send(Alarm).unwrap();
    }
}
impl Handler<Alarm> for Alarmed {
    type Reply = ();
    fn handle(&mut self, _: Alarm, _: &Context<Self>) {
        self.1.send(self.0.ask(1).unwrap()).unwrap();
    }
}

#[watched]
fn what_a_worker_sends_to_itself_comes_to_it_between_the_pools_messages() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let other = Pool::fixed(1);
    let other = other
        .spawn(|| Function::new((|n| n + 1) as fn(u32) -> u32))
        .unwrap();
    let pool = Pool::fixed(2)
        .spawn(move || Alarmed(other.clone(), tell.lock().unwrap().clone()))
        .unwrap();
    for n in 0..100 {
        pool.send(n).unwrap();
    }
    assert!((0..100).all(|_| told.recv() == Ok(2)));
    pool.close();
    assert_eq!(pool.join(), Exit::Closed);
}

#[watched]
fn what_a_worker_sends_to_itself_does_not_wait_for_the_pool_to_be_empty() {
    struct Notes(mpsc::Sender<u32>, Gate);
    impl Handler<u32> for Notes {
        type Reply = ();
        fn handle(&mut self, n: u32, context: &Context<Self>) {
            self.1.wait();
            if n == 1 {
                context.this().send(100).unwrap();
            }
            self.0.send(n).unwrap();
        }
    }
    let (tell, told) = mpsc::channel();
    let (gate, tell) = (Gate::new(), Mutex::new(Some(tell)));
    let blocked = gate.clone();
    let pool = Pool::fixed(1)
        .spawn(move || Notes(tell.lock().unwrap().take().unwrap(), blocked.clone()))
        .unwrap();
    (0..4).for_each(|n| pool.send(n).unwrap());
    gate.open();
    drop(pool);
    assert!(told.iter().eq([0, 1, 100, 2, 3]));
}

#[watched]
fn a_free_worker_that_is_at_a_message_to_itself_is_passed_over() {
    struct Private(Gate);
    impl Handler<()> for Private {
        type Reply = actor::Ref<Private>;
        fn handle(&mut self, (): (), context: &Context<Self>) -> Self::Reply {
            context.this()
        }
    }
    let gate = Gate::new();
    let held = gate.clone();
    let pool = Pool::fixed(2).spawn(move || Private(held.clone())).unwrap();
    pool.ready().unwrap();
    let begun = Gate::new();
    let begins = begun.clone();
    let worker = pool.ask(()).unwrap();
    let private = worker
        .run_later(move |private| {
            begins.open();
            private.0.wait();
        })
        .unwrap();
    begun.wait();
    for _ in 0..20 {
        assert_ne!(pool.ask(()).unwrap(), worker);
    }
    gate.open();
    assert_eq!(private.recv(), Ok(()));
}

#[watched]
fn a_snapshot_shows_the_pool_and_its_workers() {
    let (pool, _) = counted(&Builder::new().name("shown").pool(2..=2));
    let gate = keep_busy(&pool, 2);
    pool.send(1).unwrap();
    let shown = || {
        let mut shown = actor::snapshot::take();
        shown.retain(|actor| actor.name.starts_with("shown"));
        shown
    };
    // A worker is busy a moment before it counts its message.
    until(|| shown().iter().skip(1).all(|worker| worker.begun == 1));
    let shown = shown();
    assert_eq!(shown.len(), 3);
    assert_eq!((&*shown[0].name, shown[0].kind), ("shown", "pool"));
    assert_eq!((shown[0].begun, shown[0].waiting), (2, 1));
    for worker in &shown[1..] {
        assert_eq!(
            (worker.kind, worker.begun, worker.waiting),
            ("Counted", 1, 0)
        );
    }
    gate.open();
}

#[watched]
fn nothing_of_a_pool_is_left_when_the_last_reference_is_gone() {
    let held = Arc::new(());
    let (by_rule, by_recipe) = (Arc::clone(&held), Arc::clone(&held));
    let pool = Pool::scaling(2..=4)
        .weighted(1, move |_: &u32| Arc::strong_count(&by_rule))
        .spawn(move || {
            let held = Arc::clone(&by_recipe);
            Function::new(move |n: u32| n + Arc::strong_count(&held) as u32)
        })
        .unwrap();
    assert!(pool.ask(1).unwrap() > 1);
    drop(pool);
    until(|| Arc::strong_count(&held) == 1);
}
