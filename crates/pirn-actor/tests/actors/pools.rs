//! Pools: what their workers share, and how they come and go.

use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::pool::{Pool, PoolRef};
use pirn_actor::{self as actor, AskError, Builder, Context, Exit, Function, Handler, Restarts};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

/// The pools for a test that holds for both kinds of threads.
pub fn both(pool: impl Fn(Builder) -> Pool) -> [Pool; 2] {
    [Builder::new(), Builder::new().platform_threads()].map(pool)
}

/// A state that notes how many there are of it.
pub struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Counted {
        count.fetch_add(1, Ordering::SeqCst);
        Counted(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Handler<Gate> for Counted {
    type Reply = ();
    fn handle(&mut self, gate: Gate, _: &Context<Self>) {
        gate.wait();
    }
}

impl Handler<u32> for Counted {
    type Reply = u32;
    fn handle(&mut self, n: u32, _: &Context<Self>) -> u32 {
        n + 1
    }
}

pub fn counted(pool: &Pool) -> (PoolRef<Counted>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&count);
    let pool = pool.spawn(move || Counted::new(&counts)).unwrap();
    (pool, count)
}

/// Has all workers of a pool be at a message until the gate opens.
pub fn keep_busy(pool: &PoolRef<Counted>, workers: usize) -> Gate {
    let gate = Gate::new();
    (0..workers).for_each(|_| pool.send(gate.clone()).unwrap());
    until(|| pool.workers().busy == workers && pool.is_empty());
    gate
}

#[watched]
fn each_worker_has_a_state_of_its_own_and_they_work_at_the_same_time() {
    for pool in both(|builder| builder.pool(5..=5)) {
        let (pool, states) = counted(&pool);
        pool.ready().unwrap();
        assert_eq!(states.load(Ordering::SeqCst), 5);
        let gate = keep_busy(&pool, 5);
        assert_eq!((pool.workers().count, pool.workers().busy), (5, 5));
        gate.open();
        assert_eq!(pool.ask(1), Ok(2));
        pool.close();
        assert_eq!(pool.join(), Exit::Closed);
        assert_eq!(
            states.load(Ordering::SeqCst),
            0,
            "states are dropped before the end"
        );
    }
}

#[watched]
fn a_pool_answers_many_askers() {
    for workers in [1, 2, 16] {
        for pool in both(|builder| builder.pool(workers..=workers)) {
            let (pool, _) = counted(&pool);
            let askers: Vec<_> = (0..20)
                .map(|_| {
                    let pool = pool.clone();
                    thread::spawn(move || (0..50).for_each(|n| assert_eq!(pool.ask(n), Ok(n + 1))))
                })
                .collect();
            askers.into_iter().for_each(|asker| asker.join().unwrap());
        }
    }
}

#[watched]
fn a_worker_has_a_thread_only_while_it_has_work() {
    struct Resource(mpsc::Sender<thread::ThreadId>);
    impl Handler<()> for Resource {
        type Reply = ();
        fn handle(&mut self, (): (), _: &Context<Self>) {
            self.0.send(thread::current().id()).unwrap();
        }
    }
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let pool = Pool::fixed(1)
        .spawn(move || Resource(tell.lock().unwrap().clone()))
        .unwrap();
    pool.ask(()).unwrap();
    let first = told.recv().unwrap();
    // The worker's first thread leaves at some time, and then another one comes.
    until(|| {
        thread::yield_now();
        pool.ask(()).unwrap();
        told.recv().unwrap() != first
    });
}

#[watched]
fn a_worker_whose_state_is_not_ready_takes_nothing() {
    let (gate, made) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
    let blocked = gate.clone();
    let pool = Pool::fixed(2)
        .spawn(move || {
            if made.fetch_add(1, Ordering::SeqCst) == 0 {
                blocked.wait();
            }
            Function::new(|n: u32| n)
        })
        .unwrap();
    for n in 0..100 {
        assert_eq!(pool.ask(n), Ok(n));
    }
    gate.open();
    pool.ready().unwrap();
}

#[watched]
fn a_pool_grows_when_many_wait_and_shrinks_when_few_do() {
    for pool in both(|builder| builder.pool(2..=5).grow_at(3).shrink_at(1)) {
        let (pool, states) = counted(&pool);
        pool.ready().unwrap();
        let gate = keep_busy(&pool, 2);
        pool.send(gate.clone()).unwrap();
        pool.send(gate.clone()).unwrap();
        assert_eq!(pool.workers().count, 2, "two wait, and three are many");
        pool.send(gate.clone()).unwrap();
        until(|| pool.workers().busy == 3 && pool.len() == 2);
        (0..20).for_each(|_| pool.send(gate.clone()).unwrap());
        until(|| pool.workers().busy == 5);
        assert_eq!(pool.workers().count, 5, "and no more than that");
        gate.open();
        until(|| pool.workers().count == 2 && states.load(Ordering::SeqCst) == 2);
        assert_eq!(pool.ask(1), Ok(2));
        assert_eq!(pool.exit(), None);
    }
}

#[watched]
fn a_pool_that_has_shrunk_grows_again_and_leaves_nothing_behind() {
    let name = "grows-and-shrinks";
    let (pool, states) = counted(&Builder::new().name(name).pool(1..=4));
    for _ in 0..20 {
        let gate = keep_busy(&pool, 4);
        gate.open();
        until(|| pool.workers().count == 1);
    }
    pool.close();
    assert_eq!(pool.join(), Exit::Closed);
    assert_eq!(states.load(Ordering::SeqCst), 0);
    let left = actor::snapshot::take();
    assert!(!left.iter().any(|actor| actor.name.starts_with(name)));
}

#[watched]
fn a_pool_does_not_shrink_to_workers_that_are_still_being_made() {
    let (slow, made) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
    let slowed = slow.clone();
    let pool = Pool::scaling(1..=2)
        .spawn(move || {
            if made.fetch_add(1, Ordering::SeqCst) > 0 {
                slowed.wait();
            }
            Function::new(|gate: Gate| gate.wait())
        })
        .unwrap();
    let gate = Gate::new();
    let first = pool.ask_later(gate.clone()).unwrap();
    until(|| pool.workers().busy == 1);
    let second = pool.ask_later(gate.clone()).unwrap();
    until(|| pool.workers().count == 2);
    gate.open();
    assert_eq!((first.recv(), second.recv()), (Ok(()), Ok(())));
    assert_eq!(pool.ask(gate), Ok(()));
    slow.open();
    until(|| pool.workers().count == 1);
}

#[watched]
fn free_workers_retire_too_when_few_messages_wait() {
    let pool = Pool::scaling(1..=4)
        .grow_at(1)
        .keyed(|(key, _): &(u32, Gate)| *key)
        .spawn(|| Function::new(|(_, gate): (u32, Gate)| gate.wait()))
        .unwrap();
    let (gate, slow) = (Gate::new(), Gate::new());
    for key in 0..4 {
        let gate = if key == 0 { &slow } else { &gate };
        pool.send((key, gate.clone())).unwrap();
    }
    until(|| pool.workers().busy == 4);
    // These wait for the slow one: many wait, and three workers find nothing to do.
    (0..5).for_each(|_| pool.send((0, slow.clone())).unwrap());
    gate.open();
    until(|| pool.workers().busy == 1);
    assert_eq!(pool.workers().count, 4);
    slow.open();
    until(|| pool.workers().count == 1);
}

#[watched]
fn senders_that_wait_for_room_make_a_pool_grow() {
    let (pool, _) = counted(&Builder::new().capacity(1).pool(1..=2).grow_at(1000));
    let gate = keep_busy(&pool, 1);
    pool.send(gate.clone()).unwrap();
    pool.send(gate.clone()).unwrap(); // waits for the second worker, which is made for it
    assert_eq!(pool.workers().count, 2);
    gate.open();
}

#[watched]
fn weights_limit_what_is_handled_at_the_same_time() {
    let (heavy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, record) = (Arc::clone(&heavy), Arc::clone(&most));
    let pool = Pool::fixed(8)
        .weighted(10, |weight: &usize| *weight)
        .spawn(move || {
            let (now, record) = (Arc::clone(&now), Arc::clone(&record));
            Function::new(move |weight: usize| {
                let weight = weight.min(10);
                record.fetch_max(
                    now.fetch_add(weight, Ordering::SeqCst) + weight,
                    Ordering::SeqCst,
                );
                thread::yield_now();
                now.fetch_sub(weight, Ordering::SeqCst);
            })
        })
        .unwrap();
    for weight in (0..=12).cycle().take(500) {
        pool.send(weight).unwrap();
    }
    pool.close();
    pool.join();
    assert_eq!(heavy.load(Ordering::SeqCst), 0);
    let most = most.load(Ordering::SeqCst);
    assert!((6..=10).contains(&most), "{most}");
}

/// A message of a weight, at which a worker is until the gate opens.
struct Load(usize, Gate);

fn loaders(permits: usize) -> PoolRef<impl Handler<Load, Reply = usize> + Send + 'static> {
    let pool = Pool::fixed(4).weighted(permits, |load: &Load| load.0);
    let handle = |Load(weight, gate): Load| {
        gate.wait();
        weight
    };
    pool.spawn(move || Function::new(handle)).unwrap()
}

#[watched]
fn a_message_that_is_heavier_than_all_permits_is_handled_alone() {
    let pool = loaders(3);
    let (light, heavy) = (Gate::new(), Gate::new());
    let first = pool.ask_later(Load(1, light.clone())).unwrap();
    until(|| pool.workers().busy == 1);
    let second = pool.ask_later(Load(100, heavy.clone())).unwrap();
    let third = pool.ask_later(Load(1, light.clone())).unwrap();
    // The third would have a permit and a worker, but does not overtake.
    assert_eq!((pool.workers().busy, pool.len()), (1, 2));
    light.open();
    assert_eq!(first.recv(), Ok(1));
    until(|| pool.workers().busy == 1 && pool.len() == 1);
    heavy.open();
    assert_eq!((second.recv(), third.recv()), (Ok(100), Ok(1)));
}

#[watched]
fn a_heavy_message_that_is_over_lets_several_light_ones_begin() {
    let pool = loaders(3);
    let (light, heavy) = (Gate::new(), Gate::new());
    pool.send(Load(3, heavy.clone())).unwrap();
    until(|| pool.workers().busy == 1);
    (0..3).for_each(|_| pool.send(Load(1, light.clone())).unwrap());
    assert_eq!(pool.len(), 3);
    heavy.open();
    until(|| pool.workers().busy == 3);
    light.open();
}

#[watched]
fn permits_come_back_when_a_worker_panics() {
    let pool = Builder::new()
        .restarts(Restarts::at_most(100))
        .pool(2..=2)
        .weighted(1, |_: &bool| 1)
        .spawn(|| Function::new(|fine: bool| assert!(fine, "not fine")))
        .unwrap();
    for _ in 0..20 {
        assert!(matches!(pool.ask(false), Err(AskError::Failed(_))));
        assert_eq!(pool.ask(true), Ok(()));
    }
}

#[watched]
fn messages_of_one_key_are_in_order_and_one_at_a_time() {
    for pool in both(|builder| builder.pool(4..=4).keyed(|(key, _): &(u32, u32)| *key)) {
        let seen = Arc::new([const { Mutex::new(Vec::new()) }; 3]);
        let notes = Arc::clone(&seen);
        let pool = pool
            .spawn(move || {
                let notes = Arc::clone(&notes);
                Function::new(move |(key, number): (u32, u32)| {
                    let mut seen = notes[key as usize].try_lock().expect("one at a time");
                    thread::yield_now();
                    seen.push(number);
                })
            })
            .unwrap();
        for number in 0..600 {
            pool.send((number % 3, number)).unwrap();
        }
        pool.close();
        assert_eq!(pool.join(), Exit::Closed);
        for (key, seen) in (0..).zip(&*seen) {
            let seen = seen.lock().unwrap();
            assert!(seen.iter().copied().eq((key..600).step_by(3)));
        }
    }
}

#[watched]
fn a_slow_key_holds_up_no_other_key() {
    let pool = Pool::fixed(2).keyed(|(key, _): &(u32, Gate)| *key);
    let work = |(key, gate): (u32, Gate)| {
        gate.wait();
        key
    };
    let pool = pool.spawn(move || Function::new(work)).unwrap();
    let (slow, open) = (Gate::new(), Gate::new());
    open.open();
    let slow_ones: Vec<_> = (0..10)
        .map(|_| pool.ask_later((0, slow.clone())).unwrap())
        .collect();
    for key in 1..100 {
        assert_eq!(pool.ask((key, open.clone())), Ok(key));
    }
    until(|| pool.workers().busy == 1);
    assert_eq!(pool.len(), 9);
    slow.open();
    slow_ones
        .into_iter()
        .for_each(|reply| assert_eq!(reply.recv(), Ok(0)));
}

#[watched]
fn a_key_goes_on_after_a_panic() {
    let pool = Builder::new()
        .restarts(Restarts::at_most(100))
        .pool(2..=2)
        .keyed(|_: &bool| ())
        .spawn(|| Function::new(|fine: bool| assert!(fine, "not fine")))
        .unwrap();
    let replies: Vec<_> = (0..20)
        .map(|n| pool.ask_later(n % 4 > 0).unwrap())
        .collect();
    for (n, reply) in replies.into_iter().enumerate() {
        assert_eq!(reply.recv().is_ok(), n % 4 > 0);
    }
}
