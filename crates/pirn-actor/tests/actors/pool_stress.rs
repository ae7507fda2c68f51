//! Pools under load, while their workers panic, senders give up, and a thread ends them.

use crate::common::watched;
use pirn::thread;
use pirn_actor::pool::PoolRef;
use pirn_actor::{Actor, AskError, Builder, Context, Exit, Handler, Restarts};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SENDERS: u32 = 8;
const MESSAGES: u32 = 300;

/// How often each message has come to its end.
#[derive(Default)]
struct Ledger {
    handled: AtomicUsize,
    dropped: AtomicUsize,
    undelivered: AtomicUsize,
    /// Those that came before an earlier one of their sender, or beside it.
    disordered: AtomicUsize,
}

/// A message, which notes its end.
struct Task {
    sender: u32,
    number: u32,
    is_begun: bool,
    ledger: Arc<Ledger>,
}

impl Drop for Task {
    fn drop(&mut self) {
        let count = match self.is_begun {
            true => &self.ledger.handled,
            false => &self.ledger.dropped,
        };
        count.fetch_add(1, Ordering::SeqCst);
    }
}

/// The last number of each sender that a worker has seen.
type Seen = Arc<Mutex<HashMap<u32, u32>>>;

struct Worker(Seen);

impl Handler<Task> for Worker {
    type Reply = u32;
    fn handle(&mut self, mut task: Task, _: &Context<Self>) -> u32 {
        task.is_begun = true;
        let before = self.0.lock().unwrap().insert(task.sender, task.number);
        if before.is_some_and(|before| before >= task.number) {
            task.ledger.disordered.fetch_add(1, Ordering::SeqCst);
        }
        match random() % 16 {
            0 => panic!("at random"),
            1 => drop(thread::sleep_interruptible(Duration::from_micros(200))),
            2..6 => thread::yield_now(),
            _ => {}
        }
        task.number
    }
}

fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// What a sender has got: the number of messages that were taken, and not given back.
fn send_all(pool: &PoolRef<Worker>, ledger: &Arc<Ledger>, sender: u32) -> usize {
    let mut taken = 0;
    for number in 0..MESSAGES {
        let task = Task {
            sender,
            number,
            is_begun: false,
            ledger: Arc::clone(ledger),
        };
        let back = match random() % 4 {
            0 => pool.send(task).is_err(),
            1 => match pool.ask(task) {
                Ok(answer) => {
                    assert_eq!(answer, number);
                    false
                }
                Err(AskError::Failed(_) | AskError::Gone) => false,
                Err(error) => panic!("{error}"),
            },
            2 => match pool.ask_timeout(task, Duration::from_micros(random() % 300)) {
                Ok(_) | Err(AskError::Failed(_) | AskError::Gone | AskError::TimedOut) => false,
                Err(error) => panic!("{error}"),
            },
            _ => pool.ask_later(task).is_err(), // drops the answer
        };
        taken += usize::from(!back);
    }
    taken
}

/// Has senders send while the pool is ended in this way, and checks the books.
fn run(workers: RangeInclusive<usize>, end: fn(&(dyn Actor + 'static)), after: u32) {
    let ledger = Arc::new(Ledger::default());
    let (seen, told) = (Seen::default(), Arc::clone(&ledger));
    let pool = Builder::new()
        .capacity(16)
        .restarts(Restarts::at_most(1_000_000))
        .on_undelivered(move |_| {
            told.undelivered.fetch_add(1, Ordering::SeqCst);
        })
        .pool(workers)
        .keyed(|task: &Task| task.sender)
        .spawn(move || Worker(Arc::clone(&seen)))
        .unwrap();
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let (pool, ledger) = (pool.clone(), Arc::clone(&ledger));
            thread::spawn(move || {
                if sender == 0 {
                    (0..after).for_each(|_| thread::yield_now());
                    end(&*pool);
                }
                send_all(&pool, &ledger, sender)
            })
        })
        .collect();
    for sender in senders {
        assert!(sender.join().unwrap() <= MESSAGES as usize);
    }
    pool.close();
    let exit = pool.join();
    assert!(!matches!(exit, Exit::Failed(_)), "{exit}");
    assert_eq!((pool.len(), pool.workers().busy), (0, 0));
    // Every message has come to an end, once: it was begun, or skipped, given back, or undelivered.
    let count = |count: &AtomicUsize| count.load(Ordering::SeqCst);
    let ends = count(&ledger.handled) + count(&ledger.dropped);
    assert_eq!(ends, (SENDERS * MESSAGES) as usize);
    assert!(count(&ledger.undelivered) <= count(&ledger.dropped));
    assert_eq!(count(&ledger.disordered), 0);
}

fn sizes() -> [RangeInclusive<usize>; 4] {
    [1..=1, 2..=2, 16..=16, 1..=16]
}

#[watched]
fn every_message_comes_to_one_end_while_workers_panic() {
    for workers in sizes() {
        run(workers, |_| (), 0);
    }
}

#[watched]
fn every_message_comes_to_one_end_when_the_pool_is_ended() {
    for end in [<dyn Actor>::close, <dyn Actor>::stop, <dyn Actor>::kill] {
        for workers in sizes() {
            run(workers, end, random() as u32 % 200);
        }
    }
}

#[watched]
fn what_is_sent_and_not_given_back_is_handled() {
    for workers in sizes() {
        let ledger = Arc::new(Ledger::default());
        let seen = Seen::default();
        let pool = Builder::new()
            .capacity(4)
            .restarts(Restarts::at_most(1_000_000))
            .pool(workers)
            .keyed(|task: &Task| task.sender)
            .spawn(move || Worker(Arc::clone(&seen)))
            .unwrap();
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let (pool, ledger) = (pool.clone(), Arc::clone(&ledger));
                thread::spawn(move || {
                    for number in 0..MESSAGES {
                        let ledger = Arc::clone(&ledger);
                        let task = Task {
                            sender,
                            number,
                            is_begun: false,
                            ledger,
                        };
                        pool.send(task).unwrap();
                    }
                })
            })
            .collect();
        senders
            .into_iter()
            .for_each(|sender| sender.join().unwrap());
        drop(pool.clone());
        pool.close();
        assert_eq!(pool.join(), Exit::Closed);
        assert_eq!(
            ledger.handled.load(Ordering::SeqCst),
            (SENDERS * MESSAGES) as usize
        );
        assert_eq!(ledger.dropped.load(Ordering::SeqCst), 0);
        assert_eq!(ledger.disordered.load(Ordering::SeqCst), 0);
    }
}
