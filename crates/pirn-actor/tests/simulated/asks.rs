//! Asks: each ends, circles are found at once, deadlines travel.

use crate::common::{below, nap};
use pirn::thread::sleep_interruptible;
use pirn_actor::address::WeakAddress;
use pirn_actor::reply::ReplyTo;
use pirn_actor::{Address, AskError, Builder, Context, Function, Handler, Ref, Restarts};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

type Answer = Result<u32, AskError>;
type Addresses = Arc<OnceLock<Vec<WeakAddress<u32, Answer>>>>;

const ACTORS: u64 = 4;

/// Asks one of the actors with a number from `from` on, and sometimes leaves a message at one that
/// has little room.
fn ask_another(all: &Addresses, from: u64, depth: u32) -> Answer {
    nap(3);
    if depth == 0 || from >= ACTORS {
        return Ok(0);
    }
    let any = || all.wait()[(from + below(ACTORS - from)) as usize].upgrade();
    if below(4) == 0
        && let Some(to) = any()
        && let Err(error) = to.send(0)
    {
        assert!(from == 0 || !matches!(error.into_ask_error(), AskError::Deadlock(_)));
    }
    any().ok_or(AskError::Gone)?.ask(depth - 1)?.map(|n| n + 1)
}

/// Actors that ask each other: with `in_circles`, any asks any other; otherwise those after it.
fn actors_ask_each_other(in_circles: bool) {
    let all = Addresses::default();
    let actors: Vec<_> = (0..ACTORS)
        .map(|number| {
            let others = Arc::clone(&all);
            let from = if in_circles { 0 } else { number + 1 };
            let f = move |depth| ask_another(&others, from, depth);
            let builder = Builder::new().capacity(1);
            match below(3) {
                // A pipeline.
                0 => builder.function(f).then(builder.function(|it: Answer| it)),
                // A pool of one worker: with more it counts as able to continue while one is free.
                1 => {
                    let pool = builder.pool(1..=1);
                    let pool = pool.spawn(move || Function::new(f.clone())).unwrap();
                    pool.address::<u32>()
                }
                _ => builder.function(f),
            }
        })
        .collect();
    let weak = actors.iter().map(Address::downgrade).collect();
    assert!(all.set(weak).is_ok());
    let askers: Vec<_> = (0..3)
        .map(|_| {
            let to = actors[below(ACTORS) as usize].clone();
            thread::spawn(move || {
                nap(3);
                let answer = to.ask(4).unwrap(); // No thread waits for this one.
                match answer {
                    Ok(_) => {}
                    Err(AskError::Deadlock(_)) => assert!(in_circles),
                    Err(error) => panic!("{error:?}"),
                }
            })
        })
        .collect();
    thread::sleep(Duration::from_secs(3600));
    for asker in &askers {
        let actors = pirn_actor::snapshot::take();
        assert!(asker.is_finished(), "a circle was not found: {actors:#?}");
    }
    askers.into_iter().for_each(|it| it.join().unwrap());
}

#[pirn_sim::test(seeds(0..60))]
fn actors_that_wait_for_each_other_in_a_circle_are_told() {
    actors_ask_each_other(true);
}

#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(20)))]
fn pausing_actors_that_wait_for_each_other_in_a_circle_are_told() {
    actors_ask_each_other(true);
}

#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(20)))]
fn actors_that_wait_in_no_circle_are_never_told_of_one() {
    actors_ask_each_other(false);
}

/// How late a thread may be in a run without pauses: points take some 100 ns.
const SLACK: Duration = Duration::from_millis(1);

/// Works for some milliseconds, alone or by asking the next one.
struct Link {
    next: Option<Ref<Link>>,
}

/// A request, and when its asker has given up.
#[derive(Clone)]
struct Work {
    millis: u64,
    given_up: Arc<OnceLock<Instant>>,
}

impl Handler<Work> for Link {
    /// Whether it was done in time.
    type Reply = bool;
    fn handle(&mut self, work: Work, context: &Context<Self>) -> bool {
        let begin = Instant::now();
        if let Some(given_up) = work.given_up.get() {
            assert!(
                begin < *given_up + SLACK,
                "begun though nothing waits for it"
            );
        }
        let deadline = context.deadline();
        let slept = sleep_interruptible(Duration::from_millis(1 + below(work.millis))).is_ok();
        let asked = self.next.as_ref().map(|next| next.ask(work));
        let now = Instant::now();
        match deadline {
            Some(deadline) => assert!(now <= deadline.max(begin) + SLACK, "after the deadline"),
            None => assert!(slept, "another message's interrupt"),
        }
        assert!(
            slept || deadline.is_some_and(|it| it <= now),
            "interrupted early"
        );
        match asked {
            None | Some(Ok(true)) => slept,
            Some(Ok(false) | Err(AskError::TimedOut | AskError::Interrupted)) => false,
            Some(Err(error)) => panic!("{error:?}"),
        }
    }
}

#[pirn_sim::test(seeds(0..100))]
fn deadlines_travel_and_hold() {
    let last = pirn_actor::spawn(Link { next: None });
    let middle = pirn_actor::spawn(Link {
        next: Some(last.clone()),
    });
    let first = pirn_actor::spawn(Link {
        next: Some(middle.clone()),
    });
    let askers: Vec<_> = (0..4)
        .map(|asker| {
            let first = first.clone();
            let to = [first.clone(), middle.clone(), last.clone(), first][asker].clone();
            thread::spawn(move || {
                for _ in 0..3 {
                    nap(20);
                    let work = Work {
                        millis: 10,
                        given_up: Arc::default(),
                    };
                    let given_up = Arc::clone(&work.given_up);
                    let (begin, limit) = (Instant::now(), Duration::from_millis(1 + below(60)));
                    if asker == 3 {
                        assert_eq!(to.ask(work), Ok(true), "without a limit of its own");
                        continue;
                    }
                    match to.ask_timeout(work, limit) {
                        Ok(_) => {}
                        Err(AskError::TimedOut) => assert!(begin.elapsed() >= limit),
                        Err(error) => panic!("{error:?}"),
                    }
                    assert!(begin.elapsed() < limit + SLACK);
                    given_up.set(Instant::now()).unwrap();
                }
            })
        })
        .collect();
    askers.into_iter().for_each(|it| it.join().unwrap());
}

/// Handlers that fail, requests that are handed on or dropped: each ask ends, with its own answer.
#[pirn_sim::test(seeds(0..100), pauses(100, Duration::from_millis(50)))]
fn each_ask_ends_with_its_own_answer_or_a_reason() {
    let actor = Builder::new()
        .restarts(Restarts::at_most(usize::MAX))
        .spawn(|| {
            Function::new(|n: u64| {
                if n % 5 == 4 {
                    crate::common::fail()
                } else {
                    n * 2
                }
            })
        });
    let actor = actor.unwrap();
    let process = pirn_actor::process::spawn(
        |inbox: &mut pirn_actor::process::Inbox<(u64, ReplyTo<u64>)>| loop {
            let Ok((n, reply)) = inbox.recv() else { return };
            match n % 5 {
                0 => drop(reply),
                1 => reply.fail("no"),
                2 => drop(thread::spawn(move || {
                    nap(5);
                    reply.send(n * 2);
                })),
                _ => reply.send(n * 2),
            }
        },
    );
    let askers: Vec<_> = (0..3)
        .map(|asker| {
            let (actor, process) = (actor.clone(), process.clone());
            thread::spawn(move || {
                for n in 0..6 {
                    nap(3);
                    let n = 10 * asker + n;
                    match actor.ask(n) {
                        Ok(answer) => assert_eq!(answer, n * 2),
                        Err(AskError::Failed(_)) => assert_eq!(n % 5, 4),
                        Err(error) => panic!("{error:?}"),
                    }
                    match process.ask(|reply| (n, reply)) {
                        Ok(answer) => assert!(answer == n * 2 && n % 5 >= 2),
                        Err(AskError::Gone) => assert_eq!(n % 5, 0),
                        Err(AskError::Failed(_)) => assert_eq!(n % 5, 1),
                        Err(error) => panic!("{error:?}"),
                    }
                }
            })
        })
        .collect();
    askers.into_iter().for_each(|it| it.join().unwrap());
    process.close();
    process.join();
}
