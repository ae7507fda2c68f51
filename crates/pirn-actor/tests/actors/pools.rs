//! Pools: what their workers share, and how they come and go.

use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::{
    self as actor, AskError, Context, Exit, Function, Handle, Overflow, Pool, PoolRef, Refusal,
    Restarts,
};
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

/// The pools for a test that holds for both kinds of threads.
fn both(pool: &Pool) -> [Pool; 2] {
    [pool.clone(), pool.clone().platform_threads()]
}

/// A state that notes how many there are of it.
struct Counted(Arc<AtomicUsize>);

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

impl Handle<Gate> for Counted {
    type Reply = ();
    fn handle(&mut self, gate: Gate, _: &Context<Self>) {
        gate.wait();
    }
}

impl Handle<u32> for Counted {
    type Reply = u32;
    fn handle(&mut self, n: u32, _: &Context<Self>) -> u32 {
        n + 1
    }
}

fn counted(pool: &Pool) -> (PoolRef<Counted>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&count);
    let pool = pool.spawn(move || Counted::new(&counts)).unwrap();
    (pool, count)
}

/// Has all workers of a pool be at a message until the gate opens.
fn keep_busy(pool: &PoolRef<Counted>, workers: usize) -> Gate {
    let gate = Gate::new();
    (0..workers).for_each(|_| pool.send(gate.clone()).unwrap());
    until(|| pool.workers().busy == workers && pool.is_empty());
    gate
}

#[watched]
fn each_worker_has_a_state_of_its_own_and_they_work_at_the_same_time() {
    for pool in both(&Pool::fixed(5)) {
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
        for pool in both(&Pool::fixed(workers)) {
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
    impl Handle<()> for Resource {
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
    for pool in both(&Pool::scaling(2..=5).grow_at(3).shrink_at(1)) {
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
    let (pool, states) = counted(&Pool::scaling(1..=4).name(name));
    for _ in 0..20 {
        let gate = keep_busy(&pool, 4);
        gate.open();
        until(|| pool.workers().count == 1);
    }
    pool.close();
    assert_eq!(pool.join(), Exit::Closed);
    assert_eq!(states.load(Ordering::SeqCst), 0);
    let left = actor::snapshot();
    assert!(!left.iter().any(|actor| actor.name.starts_with(name)));
}

#[watched]
fn senders_that_wait_for_room_make_a_pool_grow() {
    let (pool, _) = counted(&Pool::scaling(1..=2).grow_at(1000).capacity(1));
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

fn loaders(permits: usize) -> PoolRef<impl Handle<Load, Reply = usize> + Send + 'static> {
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
    let pool = Pool::fixed(2)
        .weighted(1, |_: &bool| 1)
        .restarts(Restarts::at_most(100))
        .spawn(|| Function::new(|fine: bool| assert!(fine, "not fine")))
        .unwrap();
    for _ in 0..20 {
        assert!(matches!(pool.ask(false), Err(AskError::Failed(_))));
        assert_eq!(pool.ask(true), Ok(()));
    }
}

#[watched]
fn messages_of_one_key_are_in_order_and_one_at_a_time() {
    for pool in both(&Pool::fixed(4).keyed(|(key, _): &(u32, u32)| *key)) {
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
    let pool = Pool::fixed(2)
        .keyed(|_: &bool| ())
        .restarts(Restarts::at_most(100))
        .spawn(|| Function::new(|fine: bool| assert!(fine, "not fine")))
        .unwrap();
    let replies: Vec<_> = (0..20)
        .map(|n| pool.ask_later(n % 4 > 0).unwrap())
        .collect();
    for (n, reply) in replies.into_iter().enumerate() {
        assert_eq!(reply.recv().is_ok(), n % 4 > 0);
    }
}

#[watched]
fn a_worker_that_panics_is_made_anew_and_the_pool_goes_on() {
    for pool in both(&Pool::fixed(2).restarts(Restarts::at_most(5))) {
        let made = Arc::new(AtomicUsize::new(0));
        let makes = Arc::clone(&made);
        let pool = pool
            .spawn(move || {
                makes.fetch_add(1, Ordering::SeqCst);
                Function::new(|n: u32| 100 / n)
            })
            .unwrap();
        pool.ready().unwrap();
        let answers = [0, 1, 0, 2].map(|n| pool.ask(n));
        assert!(matches!(&answers[0], Err(AskError::Failed(_))));
        assert_eq!(answers[1], Ok(100));
        assert!(matches!(&answers[2], Err(AskError::Failed(_))));
        assert_eq!(answers[3], Ok(50));
        until(|| made.load(Ordering::SeqCst) == 4);
        assert_eq!(pool.workers().count, 2);
    }
}

#[watched]
fn a_worker_that_waits_to_be_restarted_takes_nothing() {
    let restarts = Restarts::at_most(5).backoff(LONG..LONG);
    let pool = Pool::fixed(2)
        .restarts(restarts)
        .spawn(|| Function::new(|n: u32| 100 / n))
        .unwrap();
    pool.ready().unwrap();
    assert!(pool.ask(0).is_err());
    for _ in 0..50 {
        assert_eq!(pool.ask(2), Ok(50));
    }
    pool.kill();
    assert_eq!(pool.join(), Exit::Killed);
}

#[watched]
fn a_worker_that_fails_too_often_ends_the_pool() {
    let pool = Pool::fixed(2)
        .spawn(|| Function::new(|n: u32| 100 / n))
        .unwrap();
    pool.ready().unwrap();
    assert!(matches!(pool.ask(0), Err(AskError::Failed(_))));
    let Exit::Failed(failure) = pool.join() else {
        panic!("it has failed")
    };
    assert!(failure.to_string().contains("divide by zero"));
    assert_eq!(pool.send(1).unwrap_err().refusal(), &Refusal::Closed);
}

#[watched]
fn a_recipe_that_fails_is_the_end() {
    let pool = Pool::fixed(3)
        .try_spawn(|| Err::<Function<fn(u32)>, _>("no state"))
        .unwrap();
    let reply = pool.ask(1);
    assert_eq!(reply, Err(AskError::Gone));
    let Err(Exit::Failed(failure)) = pool.ready() else {
        panic!("it is not ready")
    };
    assert_eq!(failure.to_string(), "no state");
}

#[watched]
fn a_closed_pool_handles_all_that_it_has() {
    for pool in both(&Pool::fixed(3)) {
        let (pool, _) = counted(&pool);
        let gate = keep_busy(&pool, 3);
        let replies: Vec<_> = (0..20).map(|n| pool.ask_later(n).unwrap()).collect();
        pool.close();
        assert_eq!(pool.send(4).unwrap_err().refusal(), &Refusal::Closed);
        gate.open();
        for (n, reply) in (0..).zip(replies) {
            assert_eq!(reply.recv(), Ok(n + 1));
        }
        assert_eq!(pool.join(), Exit::Closed);
    }
}

#[watched]
fn a_pool_is_closed_when_nobody_can_send_to_it() {
    let (pool, states) = counted(&Pool::fixed(3));
    let (monitor, address) = (pool.monitor(), pool.address::<u32>());
    drop(pool);
    assert_eq!(address.ask(1), Ok(2));
    assert_eq!(monitor.try_recv(), None);
    drop(address);
    assert_eq!(monitor.recv().unwrap(), Exit::Closed);
    assert_eq!(states.load(Ordering::SeqCst), 0);
}

#[watched]
fn a_stopped_pool_finishes_what_its_workers_are_at() {
    let undelivered = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&undelivered);
    let pool = Pool::fixed(2).on_undelivered(move |_| drop(counts.fetch_add(1, Ordering::SeqCst)));
    let (pool, _) = counted(&pool);
    let gate = Gate::new();
    let first: Vec<_> = (0..2)
        .map(|_| pool.ask_later(gate.clone()).unwrap())
        .collect();
    until(|| pool.workers().busy == 2);
    let others: Vec<_> = (0..5).map(|n| pool.ask_later(n).unwrap()).collect();
    pool.stop();
    assert_eq!(pool.exit(), None);
    gate.open();
    assert_eq!(pool.join(), Exit::Stopped);
    assert!(first.into_iter().all(|reply| reply.recv() == Ok(())));
    assert!(
        others
            .into_iter()
            .all(|reply| reply.recv() == Err(AskError::Gone))
    );
    assert_eq!(undelivered.load(Ordering::SeqCst), 5);
}

#[watched]
fn a_kill_interrupts_all_workers() {
    let (reader, writer) = std::io::pipe().unwrap();
    let reader = Arc::new(reader);
    let reads = Pool::fixed(3).spawn(move || {
        let reader = Arc::clone(&reader);
        Function::new(move |()| (&*reader).read(&mut [0; 8]).is_err())
    });
    killed_while_busy(&reads.unwrap());
    drop(writer);
    for pool in both(&Pool::fixed(3)) {
        let sleeps = || Function::new(|()| thread::sleep_interruptible(LONG).is_err());
        killed_while_busy(&pool.spawn(sleeps).unwrap());
    }
}

/// Kills a pool whose three workers are at messages that would be for ever. They answer whether
/// they have been interrupted.
fn killed_while_busy<S>(pool: &PoolRef<S>)
where
    S: Handle<(), Reply = bool> + Send + 'static,
{
    let replies: Vec<_> = (0..3).map(|_| pool.ask_later(()).unwrap()).collect();
    let waits = pool.ask_later(()).unwrap();
    until(|| pool.workers().busy == 3);
    pool.kill();
    assert_eq!(pool.join(), Exit::Killed);
    assert!(replies.into_iter().all(|reply| reply.recv() == Ok(true)));
    assert_eq!(waits.recv(), Err(AskError::Gone));
}

#[watched]
fn an_idle_pool_can_be_ended_in_each_way() {
    for (end, exit) in [
        (PoolRef::<Counted>::close as fn(&_), Exit::Closed),
        (PoolRef::stop, Exit::Stopped),
        (PoolRef::kill, Exit::Killed),
    ] {
        let (pool, _) = counted(&Pool::fixed(4));
        pool.ready().unwrap();
        end(&pool);
        assert_eq!(pool.join(), exit);
        end(&pool);
        assert_eq!(pool.exit(), Some(exit));
    }
}

struct Ends;
impl Handle<Exit> for Ends {
    type Reply = ();
    fn handle(&mut self, how: Exit, context: &Context<Self>) {
        match how {
            Exit::Closed => context.close(),
            Exit::Stopped => context.stop(),
            _ => context.this().kill(),
        }
    }
}
impl Handle<u32> for Ends {
    type Reply = u32;
    fn handle(&mut self, n: u32, _: &Context<Self>) -> u32 {
        n
    }
}

#[watched]
fn a_worker_that_ends_ends_the_pool_in_the_same_way() {
    for workers in [1, 3] {
        for exit in [Exit::Closed, Exit::Stopped, Exit::Killed] {
            let pool = Pool::fixed(workers).spawn(|| Ends).unwrap();
            pool.send(exit.clone()).unwrap();
            assert_eq!(pool.join(), exit);
        }
    }
}

#[watched]
fn a_worker_that_closes_the_pool_leaves_nothing_undone() {
    for workers in [1, 2] {
        let pool = Pool::fixed(workers).spawn(|| Ends).unwrap();
        let (sent, sender) = (pool.clone(), Gate::new());
        let go = sender.clone();
        let asking = thread::spawn(move || {
            go.wait();
            (0..)
                .map_while(|n| sent.ask_later(n).ok())
                .collect::<Vec<_>>()
        });
        sender.open();
        pool.send(Exit::Closed).unwrap();
        for (n, reply) in (0..).zip(asking.join().unwrap()) {
            assert_eq!(reply.recv(), Ok(n));
        }
        assert_eq!(pool.join(), Exit::Closed);
    }
}

#[watched]
fn a_full_pool_does_what_its_overflow_says() {
    for overflow in [
        Overflow::Fail,
        Overflow::DropNew,
        Overflow::DropOld,
        Overflow::Stop,
    ] {
        let (pool, _) = counted(&Pool::fixed(2).capacity(3).overflow(overflow));
        let gate = keep_busy(&pool, 2);
        let first: Vec<_> = (0..3).map(|n| pool.ask_later(n).unwrap()).collect();
        let last = pool.ask_later(3);
        let gone = Err(AskError::Gone);
        let expected = match overflow {
            Overflow::Fail => {
                assert!(last.unwrap_err().is_full());
                [Ok(1), Ok(2), Ok(3)]
            }
            Overflow::DropNew => {
                assert_eq!(last.unwrap().recv(), gone);
                [Ok(1), Ok(2), Ok(3)]
            }
            Overflow::DropOld => {
                drop(last); // nobody waits for it
                [gone, Ok(2), Ok(3)]
            }
            _ => {
                assert_eq!(last.unwrap_err().refusal(), &Refusal::Closed);
                [gone.clone(), gone.clone(), gone]
            }
        };
        gate.open();
        let answers: Vec<_> = first.into_iter().map(|reply| reply.recv()).collect();
        assert_eq!(answers, expected, "{overflow:?}");
    }
}

#[watched]
fn senders_wait_for_room_in_order_of_arrival() {
    let (tell, told) = mpsc::channel();
    let gate = Gate::new();
    let blocked = gate.clone();
    let pool = Pool::fixed(1).capacity(1).name("pool-with-a-line");
    let pool = pool
        .spawn(move || {
            let (tell, blocked) = (tell.clone(), blocked.clone());
            Function::new(move |n: u32| {
                blocked.wait();
                tell.send(n).unwrap();
            })
        })
        .unwrap();
    pool.send(0).unwrap();
    until(|| pool.is_empty());
    pool.send(1).unwrap();
    let mut senders = Vec::new();
    for n in 2..10 {
        let sending = pool.clone();
        senders.push(thread::spawn(move || sending.send(n).unwrap()));
        let line = || {
            let all = actor::snapshot();
            let seen = all.iter().find(|actor| actor.name == pool.name());
            seen.unwrap().senders
        };
        until(|| line() == senders.len());
    }
    assert!(pool.try_send(10).unwrap_err().is_full());
    pool.send_urgent(11).unwrap();
    gate.open();
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
    drop(pool);
    assert!(told.iter().eq([0, 11].into_iter().chain(1..10)));
}

#[watched]
fn a_sender_that_waits_for_room_can_give_up_and_hears_of_the_end() {
    let (pool, _) = counted(&Pool::fixed(1).capacity(1));
    let gate = keep_busy(&pool, 1);
    pool.send(1).unwrap();
    let late = pool.ask_timeout(2, Duration::from_millis(5));
    assert_eq!(late, Err(AskError::TimedOut));
    let [interrupted, closed] = [(), ()].map(|()| {
        let pool = pool.clone();
        thread::spawn(move || pool.send(3).unwrap_err())
    });
    interrupted.thread().interrupt();
    let error = interrupted.join().unwrap();
    assert_eq!(error.refusal(), &Refusal::Interrupted);
    pool.close();
    let error = closed.join().unwrap();
    assert_eq!(error.refusal(), &Refusal::Closed);
    assert_eq!(error.into_message(), 3);
    gate.open();
}

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
    impl Handle<()> for Asks {
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
    struct Nested(std::sync::OnceLock<PoolRef<Nested>>);
    struct Know(PoolRef<Nested>);
    impl Handle<Know> for Nested {
        type Reply = ();
        fn handle(&mut self, Know(pool): Know, _: &Context<Self>) {
            let _ = self.0.set(pool);
        }
    }
    impl Handle<u32> for Nested {
        type Reply = Result<u32, AskError>;
        fn handle(&mut self, depth: u32, _: &Context<Self>) -> Self::Reply {
            match (depth, self.0.get()) {
                (0, _) => Ok(0),
                (_, Some(pool)) => pool.ask(depth - 1)?.map(|depth| depth + 1),
                (_, None) => Ok(100), // the other worker knows
            }
        }
    }
    let one = Pool::fixed(1)
        .name("one")
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
struct Alarmed(PoolRef<Function<fn(u32) -> u32>>, mpsc::Sender<u32>);
struct Alarm;

impl Handle<u32> for Alarmed {
    type Reply = ();
    fn handle(&mut self, _: u32, context: &Context<Self>) {
        context.this().send(Alarm).unwrap();
    }
}
impl Handle<Alarm> for Alarmed {
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
fn a_free_worker_that_is_at_a_message_to_itself_is_passed_over() {
    struct Private(Gate);
    impl Handle<()> for Private {
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
    let (pool, _) = counted(&Pool::fixed(2).name("shown"));
    let gate = keep_busy(&pool, 2);
    pool.send(1).unwrap();
    let mut shown = actor::snapshot();
    shown.retain(|actor| actor.name.starts_with("shown"));
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
