//! A thousand actors that fail, are killed and restarted at random, and those who ask them.

use super::fail;
use crate::common::watched;
use pirn::thread;
use pirn_actor::supervisor::{Supervisor, Tree};
use pirn_actor::{AskError, Context, Handler, Ref};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const GROUPS: usize = 125;
const CHILDREN: usize = 8;
const SENDERS: usize = 40;
const MESSAGES: usize = 500;

/// What all incarnations of all children know.
struct World {
    /// How often each message was handled.
    handled: Vec<AtomicU8>,
    /// The last message that each child has handled of each sender.
    last: Vec<Mutex<[usize; SENDERS]>>,
    restarts: AtomicU32,
}

struct Worker {
    world: Arc<World>,
    place: usize,
    /// Two threads that work on one state at the same time are seen by this.
    is_busy: Arc<AtomicBool>,
}

#[derive(Clone, Copy)]
struct Work {
    sender: usize,
    number: usize,
    fails: bool,
}

impl Handler<Work> for Worker {
    type Reply = usize;
    fn handle(&mut self, work: Work, _: &Context<Self>) -> usize {
        assert!(!self.is_busy.swap(true, Ordering::SeqCst), "two at once");
        let id = work.sender * MESSAGES + work.number;
        self.world.handled[id].fetch_add(1, Ordering::SeqCst);
        let last = {
            let mut last = self.world.last[self.place].lock().unwrap();
            std::mem::replace(&mut last[work.sender], work.number + 1)
        };
        assert!(
            last <= work.number,
            "{last} was handled before {}",
            work.number
        );
        if work.number % 16 == 3 {
            let _ = thread::sleep_interruptible(Duration::from_micros(50));
        }
        self.is_busy.store(false, Ordering::SeqCst);
        if work.fails {
            fail("worker");
        }
        work.number
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

fn tree(world: &Arc<World>) -> Tree {
    let hour = Duration::from_secs(3600);
    let told = Arc::clone(world);
    let mut root = Supervisor::one_for_one()
        .restarts(usize::MAX, hour)
        .on_event(move |_| {
            told.restarts.fetch_add(1, Ordering::SeqCst);
        });
    for group in 0..GROUPS {
        let inner = match group % 3 {
            0 => Supervisor::one_for_one(),
            1 => Supervisor::one_for_all(),
            _ => Supervisor::rest_for_one(),
        };
        // Some failures are more than a group may mend.
        let mut inner = inner
            .restarts(5, hour)
            .backoff(Duration::ZERO..Duration::from_millis(1));
        for child in 0..CHILDREN {
            let (world, place) = (Arc::clone(world), group * CHILDREN + child);
            let is_busy = Arc::new(AtomicBool::new(false));
            inner = inner.child(format!("{child}"), move || Worker {
                world: Arc::clone(&world),
                place,
                is_busy: Arc::clone(&is_busy),
            });
        }
        root = root.supervisor(format!("{group}"), inner);
    }
    root.start().unwrap()
}

fn send_and_ask(app: &Tree, world: &World, sender: usize) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 + sender as u64);
    for number in 0..MESSAGES {
        let (group, child) = (random.below(GROUPS), random.below(CHILDREN));
        let worker: Ref<Worker> = app.get(&format!("{group}/{child}")).unwrap();
        let fails = random.below(20) == 0;
        let work = Work {
            sender,
            number,
            fails,
        };
        let id = sender * MESSAGES + number;
        let handled = || world.handled[id].load(Ordering::SeqCst);
        match random.below(8) {
            0 => worker.kill(),
            1 if random.below(4) == 0 => worker.stop(),
            1..=3 => {
                if worker.send(work).is_err() {
                    assert_eq!(handled(), 0, "it came back, and was handled");
                }
            }
            _ => match worker.ask(work) {
                Ok(answer) => assert_eq!((answer, handled()), (number, 1)),
                Err(AskError::Failed(_)) => assert!(fails && handled() == 1),
                Err(AskError::Gone) => assert_eq!(handled(), 0, "gone, and was handled"),
                Err(other) => panic!("{other}"),
            },
        }
    }
}

// Two seconds of processor time, which a busy machine may take long to give.
#[watched(limit = Duration::from_secs(600))]
fn every_ask_ends_and_no_message_is_both_handled_and_returned() {
    let world = Arc::new(World {
        handled: (0..SENDERS * MESSAGES).map(|_| AtomicU8::new(0)).collect(),
        last: (0..GROUPS * CHILDREN)
            .map(|_| Mutex::new([0; SENDERS]))
            .collect(),
        restarts: AtomicU32::new(0),
    });
    let app = tree(&world);
    thread::scope(|s| {
        for sender in 0..SENDERS {
            let (app, world) = (&app, &world);
            s.spawn(move || send_and_ask(app, world, sender));
        }
    });
    assert!(world.restarts.load(Ordering::SeqCst) > 100);
    // All are there: each answers, or has not been replaced yet.
    for group in 0..GROUPS {
        for child in 0..CHILDREN {
            let asks = || app.get::<Ref<Worker>>(&format!("{group}/{child}")).unwrap();
            while asks().run(|_| ()).is_err() {
                thread::yield_now();
            }
        }
    }
    super::stop(&app);
    let twice = |times: &&AtomicU8| times.load(Ordering::SeqCst) > 1;
    assert_eq!(world.handled.iter().filter(twice).count(), 0);
}
