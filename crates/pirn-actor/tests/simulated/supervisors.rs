//! Supervision: which states are there at the same time, and what happens to messages meanwhile.

use crate::common::{Count, One, below, fail, nap};
use pirn_actor::supervisor::{Supervisor, Tree, TreeEvent};
use pirn_actor::{AskError, Context, Exit, Handler, Ref};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const NAMES: [&str; 3] = ["a", "b", "c"];
const HOUR: Duration = Duration::from_secs(3600);

/// What the states of the children share.
#[derive(Clone, Default)]
struct Shared {
    states: [Count; 3],
    /// Which strategy it is, by the place in [`strategy`].
    strategy: u64,
    /// Bombs that went off.
    failures: Arc<AtomicU64>,
    /// Children that ended last, in order, once the tree was told to end.
    ended: Arc<Mutex<Vec<usize>>>,
    ends: Arc<AtomicBool>,
}

fn strategy(number: u64) -> Supervisor {
    match number {
        0 => Supervisor::one_for_one(),
        1 => Supervisor::one_for_all(),
        _ => Supervisor::rest_for_one(),
    }
}

struct Part {
    child: usize,
    shared: Shared,
    _there: One,
}

impl Shared {
    /// Makes the state of a child, or fails.
    fn part(&self, child: usize, often: u64) -> Result<Part, &'static str> {
        let (there, states) = self.states[child].add();
        assert_eq!(states, 1, "a child has two states");
        if self.strategy > 0 {
            let after = &self.states[child + 1..];
            let there = after.iter().map(Count::get).sum::<usize>();
            assert_eq!(there, 0, "{} begins before those after it", NAMES[child]);
        }
        nap(5);
        if often > 0 && below(often) == 0 {
            self.failures.fetch_add(1, SeqCst);
            return Err("a bad day");
        }
        Ok(Part {
            child,
            shared: self.clone(),
            _there: there,
        })
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.shared.ends.load(SeqCst) {
            self.shared.ended.lock().unwrap().push(self.child);
        }
    }
}

/// A message; a bomb makes its handler fail.
struct Work {
    number: u64,
    is_bomb: bool,
}

impl Handler<Work> for Part {
    type Reply = u64;
    fn handle(&mut self, work: Work, _: &Context<Self>) -> u64 {
        nap(5);
        if work.is_bomb {
            self.shared.failures.fetch_add(1, SeqCst);
            fail();
        }
        work.number
    }
}

fn start(shared: &Shared, most: usize, bad_days: u64) -> Arc<Tree> {
    let children = NAMES.iter().enumerate();
    let supervisor = strategy(shared.strategy)
        .restarts(most, HOUR)
        .grace(HOUR) // Threads pause.
        .backoff(Duration::from_millis(1)..Duration::from_millis(20));
    let supervisor = children.fold(supervisor, |supervisor, (child, name)| {
        let (shared, begun) = (shared.clone(), AtomicBool::new(false));
        supervisor.try_child(*name, move || {
            // A tree whose child does not begin does not start.
            let often = if begun.swap(true, SeqCst) {
                bad_days
            } else {
                0
            };
            shared.part(child, often)
        })
    });
    Arc::new(supervisor.start().unwrap())
}

/// Threads that ask the children, with bombs among the requests. Returns whether all were answered.
fn work(tree: &Arc<Tree>, bombs: u64, by_name: bool) -> bool {
    let askers: Vec<_> = (0..3)
        .map(|_| {
            let tree = Arc::clone(tree);
            let children = NAMES.map(|name| tree.get::<Ref<Part>>(name).unwrap());
            thread::spawn(move || {
                let mut answered = true;
                for number in 0..5 {
                    nap(10);
                    let is_bomb = below(bombs) == 0;
                    let child = below(3) as usize;
                    let found = tree.get::<Ref<Part>>(NAMES[child]);
                    let to = match found {
                        Ok(found) if by_name => found,
                        _ => children[child].clone(),
                    };
                    match to.ask(Work { number, is_bomb }) {
                        Ok(answer) => assert!(answer == number && !is_bomb),
                        Err(AskError::Failed(_)) => assert!(is_bomb),
                        Err(AskError::Gone) => answered = false,
                        Err(error) => panic!("{error:?}"),
                    }
                }
                answered
            })
        })
        .collect();
    let answered = askers.into_iter().map(|it| it.join().unwrap());
    answered.fold(true, |all, one| all & one)
}

fn ends_in_reverse_order(tree: &Tree, shared: &Shared) {
    thread::sleep(HOUR); // No child restarts any more.
    shared.ends.store(true, SeqCst);
    tree.stop();
    assert_eq!(tree.join(), Exit::Stopped);
    let ended = shared.ended.lock().unwrap().clone();
    assert!(ended.iter().rev().is_sorted(), "{ended:?}");
    assert!(shared.states.iter().all(|it| it.get() == 0));
}

/// Children that fail are restarted, and their askers see nothing of it.
#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(50)))]
fn references_and_waiting_messages_stay_good_across_restarts() {
    let shared = Shared {
        strategy: below(3),
        ..Shared::default()
    };
    let tree = start(&shared, usize::MAX, 3);
    assert!(work(&tree, 4, false), "an ask got Gone");
    ends_in_reverse_order(&tree, &shared);
}

/// The tree fails with one failure more than it may have, and not before.
#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(50)))]
fn a_tree_fails_after_as_many_restarts_as_it_was_told() {
    let most = below(4);
    let shared = Shared::default(); // With the others, failures of those that restart do not count.
    let tree = start(&shared, most as usize, 0);
    let answered = work(&tree, 3, false);
    let failures = shared.failures.load(SeqCst);
    if failures > most {
        assert!(matches!(tree.join(), Exit::Failed(_)));
        // Bombs in two children may go off at once, and no more after that.
        assert!(failures <= most + 3, "{failures} of {most}");
    } else {
        assert!(answered);
        ends_in_reverse_order(&tree, &shared);
    }
    assert!(shared.states.iter().all(|it| it.get() == 0));
}

/// Other code ends children: each is replaced, and there is one at a time.
#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(50)))]
fn children_that_others_end_are_replaced() {
    let shared = Shared {
        strategy: below(3),
        ..Shared::default()
    };
    let tree = start(&shared, usize::MAX, 0);
    let ender = {
        let tree = Arc::clone(&tree);
        thread::spawn(move || {
            for _ in 0..4 {
                nap(15);
                let child = tree.get::<Ref<Part>>(NAMES[below(3) as usize]);
                if let Ok(child) = child {
                    match below(3) {
                        0 => child.kill(),
                        1 => child.stop(),
                        _ => child.close(),
                    }
                }
            }
        })
    };
    work(&tree, 5, true);
    ender.join().unwrap();
    thread::sleep(HOUR);
    for name in NAMES {
        let child: Ref<Part> = tree.get(name).unwrap();
        assert_eq!(
            child.ask(Work {
                number: 7,
                is_bomb: false
            }),
            Ok(7)
        );
    }
    assert!(shared.states.iter().all(|it| it.get() == 1));
    ends_in_reverse_order(&tree, &shared);
}

/// A tree within a tree, told to end at any time: it ends, and nothing is left.
#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(50)))]
fn nested_trees_end_with_all_that_is_in_them() {
    let states = Count::default();
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let inner_states = states.clone();
    let part = move |_: u64| {
        let there = inner_states.add().0;
        move |n: u64| {
            let _there = &there;
            if n % 4 == 3 { fail() } else { n }
        }
    };
    let (one, other) = (part.clone(), part.clone());
    let inner = strategy(below(3))
        .restarts(below(3) as usize, HOUR)
        .grace(HOUR)
        .function("one", move || one(0))
        .function("other", move || other(0));
    let tree = strategy(below(3))
        .restarts(below(3) as usize, HOUR)
        .grace(HOUR)
        .on_event(move |event: &TreeEvent| told.lock().unwrap().push(event.clone()))
        .function("before", move || part(0))
        .supervisor("inner", inner)
        .start()
        .unwrap();
    let before: pirn_actor::Address<u64, u64> = tree.get("before").unwrap();
    let one: pirn_actor::Address<u64, u64> = tree.get("inner/one").unwrap();
    let askers: Vec<_> = [before, one]
        .into_iter()
        .map(|to| {
            thread::spawn(move || {
                for n in 0..6 {
                    nap(5);
                    match to.ask(n) {
                        Ok(answer) => assert_eq!(answer, n),
                        Err(AskError::Failed(_)) => assert_eq!(n % 4, 3),
                        Err(AskError::Gone) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            })
        })
        .collect();
    nap(20);
    match below(3) {
        0 => tree.stop(),
        1 => tree.kill(),
        _ => tree.close(),
    }
    tree.join();
    assert_eq!(states.get(), 0, "{:?}", events.lock().unwrap());
    askers.into_iter().for_each(|it| it.join().unwrap());
}
