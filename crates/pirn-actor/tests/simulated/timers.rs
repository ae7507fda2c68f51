//! Timers: never early, once, and not after they were cancelled.

use crate::common::{below, nap};
use pirn_actor::{Context, Handler, time};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The timers' thread rests for so long before it ends.
const REST: Duration = Duration::from_secs(1);

#[pirn_sim::test(seeds(0..100), pauses(200, Duration::from_millis(20)))]
fn a_message_comes_once_and_not_early_unless_it_was_cancelled() {
    let come = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&come);
    let actor = pirn_actor::consumer(move |(n, due): (u64, Instant)| {
        assert!(Instant::now() >= due, "early");
        log.lock().unwrap().push(n);
    });
    let setters: Vec<_> = (0..3)
        .map(|setter| {
            let actor = actor.clone();
            thread::spawn(move || {
                let mut cancelled = Vec::new();
                for n in 0..4 {
                    let n = 10 * setter + n;
                    let delay = Duration::from_micros(below(20_000));
                    let due = Instant::now() + delay;
                    let timer = time::send_at(&actor, due, (n, due));
                    nap(10);
                    if below(2) == 0 && timer.cancel() {
                        cancelled.push(n);
                        assert!(timer.is_over() && !timer.cancel());
                    }
                }
                cancelled
            })
        })
        .collect();
    let cancelled = setters.into_iter().flat_map(|it| it.join().unwrap());
    let cancelled: Vec<_> = cancelled.collect();
    thread::sleep(REST);
    let mut come = std::mem::take(&mut *come.lock().unwrap());
    come.sort_unstable();
    let all = (0..3).flat_map(|setter| (0..4).map(move |n| 10 * setter + n));
    // A message that the timer is sending when it is cancelled still arrives.
    let neither = all.filter(|n| !come.contains(n) && !cancelled.contains(n));
    assert_eq!(neither.count(), 0);
    assert!(
        come.is_sorted_by(|one, other| one < other),
        "{come:?} came twice"
    );
}

#[pirn_sim::test(seeds(0..60))]
fn a_fixed_rate_does_not_drift() {
    let (begin, period) = (Instant::now(), Duration::from_millis(10));
    let come = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&come);
    let actor = pirn_actor::consumer(move |()| {
        log.lock().unwrap().push(begin.elapsed());
        nap(9);
    });
    let timer = time::every(&actor, period, ());
    thread::sleep(period * 20 + period / 2);
    timer.cancel();
    thread::sleep(REST);
    let come = come.lock().unwrap();
    assert_eq!(come.len(), 20);
    for (number, come) in (1..).zip(come.iter()) {
        let due = period * number;
        assert!(
            (due..due + Duration::from_millis(1)).contains(come),
            "{number}: {come:?}"
        );
    }
}

/// Sets timers for itself, and ends.
struct Alarm;
#[derive(Clone)]
struct Ring;

impl Handler<u64> for Alarm {
    type Reply = ();
    fn handle(&mut self, millis: u64, context: &Context<Self>) {
        context.send_after(Duration::from_millis(millis), Ring);
        context.every_after(Duration::from_millis(1 + millis), Ring);
    }
}

impl Handler<Ring> for Alarm {
    type Reply = ();
    fn handle(&mut self, _: Ring, context: &Context<Self>) {
        if below(3) == 0 {
            context.stop();
        }
    }
}

/// The run ends only if its timers do.
#[pirn_sim::test(seeds(0..100), pauses(200, Duration::from_millis(20)))]
fn timers_end_with_their_actor() {
    let actors: Vec<_> = (0..3).map(|_| pirn_actor::spawn(Alarm)).collect();
    for actor in &actors {
        actor.send(below(20)).unwrap();
        let again = time::every(actor, Duration::from_millis(1 + below(10)), below(20));
        if below(2) == 0 {
            actor.kill();
            actor.join();
            nap(1);
            thread::sleep(Duration::from_millis(50)); // Its end is told on another thread.
            assert!(again.is_over());
        }
    }
    actors.iter().for_each(|it| drop(it.join()));
    drop(actors);
    thread::sleep(REST);
}

/// A message that takes too long is interrupted, and only that one.
#[pirn_sim::test(seeds(0..60))]
fn a_message_timeout_interrupts_its_own_message_only() {
    let limit = Duration::from_millis(10);
    let actor = pirn_actor::Builder::new()
        .message_timeout(limit)
        .restarts(pirn_actor::Restarts::at_most(usize::MAX))
        .spawn(|| {
            pirn_actor::Function::new(|millis: u64| {
                let begin = Instant::now();
                let nap = Duration::from_millis(millis);
                (
                    pirn::thread::sleep_interruptible(nap).is_ok(),
                    begin.elapsed(),
                )
            })
        });
    let actor = actor.unwrap();
    let askers: Vec<_> = (0..3)
        .map(|_| {
            let actor = actor.clone();
            thread::spawn(move || {
                for _ in 0..4 {
                    nap(5);
                    let millis = [1, 5, 9, 11, 30][below(5) as usize];
                    let (slept, took) = actor.ask(millis).unwrap();
                    assert_eq!(slept, millis < 10, "{millis} ms: {took:?}");
                    assert!(took <= limit + Duration::from_millis(1));
                }
            })
        })
        .collect();
    askers.into_iter().for_each(|it| it.join().unwrap());
    drop(actor);
    thread::sleep(REST);
}
