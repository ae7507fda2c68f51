//! How pools go on after failures, how they end, and what they do when they are full.

use crate::common::{Gate, until, watched};
use crate::pools::{both, counted, keep_busy};
use pirn::thread;
use pirn_actor::error::Refusal;
use pirn_actor::pool::{Pool, PoolRef};
use pirn_actor::{
    self as actor, Actor, AskError, Builder, Context, Exit, Function, Handler, Overflow, Restarts,
};
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

#[watched]
fn a_worker_that_panics_is_made_anew_and_the_pool_goes_on() {
    for pool in both(|builder| builder.restarts(Restarts::at_most(5)).pool(2..=2)) {
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
    let pool = Builder::new()
        .restarts(restarts)
        .pool(2..=2)
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
    for pool in both(|builder| builder.pool(3..=3)) {
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
    let pool = Builder::new()
        .on_undelivered(move |_| {
            counts.fetch_add(1, Ordering::SeqCst);
        })
        .pool(2..=2);
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
    for pool in both(|builder| builder.pool(3..=3)) {
        let sleeps = || Function::new(|()| thread::sleep_interruptible(LONG).is_err());
        killed_while_busy(&pool.spawn(sleeps).unwrap());
    }
}

/// Kills a pool whose three workers are at messages that would be for ever. They answer whether
/// they have been interrupted.
fn killed_while_busy<S>(pool: &PoolRef<S>)
where
    S: Handler<(), Reply = bool> + Send + 'static,
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
        (<dyn Actor>::close as fn(&_), Exit::Closed),
        (<dyn Actor>::stop, Exit::Stopped),
        (<dyn Actor>::kill, Exit::Killed),
    ] {
        let (pool, _) = counted(&Pool::fixed(4));
        pool.ready().unwrap();
        end(&*pool);
        assert_eq!(pool.join(), exit);
        end(&*pool);
        assert_eq!(pool.exit(), Some(exit));
    }
}

struct Ends;
impl Handler<Exit> for Ends {
    type Reply = ();
    fn handle(&mut self, how: Exit, context: &Context<Self>) {
        match how {
            Exit::Closed => context.close(),
            Exit::Stopped => context.stop(),
            _ => context.this().kill(),
        }
    }
}
impl Handler<u32> for Ends {
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
        let (pool, _) = counted(&Builder::new().capacity(3).overflow(overflow).pool(2..=2));
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
                drop(last); // without waiting for its answer
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
    let pool = Builder::new()
        .capacity(1)
        .name("pool-with-a-line")
        .pool(1..=1);
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
            let all = actor::snapshot::take();
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
    let (pool, _) = counted(&Builder::new().capacity(1).pool(1..=1));
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
