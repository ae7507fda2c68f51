//! The part that the workers of a pool share: the waiting messages, the workers, the free workers.
//!
//! ```text
//!                    +------------------------- has looked, found nothing --+
//!                    v                                                      |
//!  spawn -> making free --called: there is something to begin--> called --> busy
//!             |                                                             ^  |
//!             +--------- has its state, and looks for the first time -------+  +--> retired, ended
//! ```
//!
//! Workers look for messages by themselves: the one that is ready first takes the next message, and
//! one whose state is still being made takes none. So the pool calls a free worker only if a
//! message can be begun, and more messages wait than workers are called. Each event that may let a
//! message begin calls a worker: a message that comes, and each look, so that a worker that takes a
//! message calls the next worker.
//!
//! Nothing here waits for time to pass. The pool grows when a message comes, or a worker looks, and
//! too many wait. It shrinks when a worker looks and finds few.
//!
//! A thread that holds this lock may take the lock of a worker's mailbox, but not the reverse. The
//! deadlock search holds the locks of all edges, and takes this one. Actions that take other locks,
//! or time, come after the lock is released: see [`Deferred`].

use super::builder::{Pool, Sizes};
use super::ready::{Entry, Ready};
use super::reference::Workers;
use super::rules::{Rules, Tag};
use super::worker::{Given, Worker};
use crate::actor::{Builder, Hooks, Item, Options, Recipe};
use crate::edges::AnyOf;
use crate::ending::Ending;
use crate::error::Failure;
use crate::life::{Actor, Life, Load};
use crate::mailbox::{Line, Overflow, Phase};
use crate::poison::locked;
use crate::snapshot;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// Makes the state of each worker.
pub(super) type SharedMake<S> = Arc<dyn Fn() -> Result<S, Failure> + Send + Sync>;

pub(crate) struct PoolCell<S: Send + 'static> {
    pub(super) life: Life,
    pub(super) capacity: usize,
    pub(super) overflow: Overflow,
    pub(super) options: Options,
    pub(super) rules: Rules,
    pub(super) sizes: Sizes,
    /// The builder of workers.
    workers: Builder,
    /// The hooks of the workers' states.
    hooks: Hooks<S>,
    shared: Mutex<Shared<S>>,
    this: Weak<PoolCell<S>>,
}

pub(super) struct Shared<S: Send + 'static> {
    pub(super) ready: Ready<Item<S>>,
    /// Senders that wait for room.
    pub(super) line: Line<Entry<Item<S>>>,
    pub(super) phase: Phase,
    /// Why the pool has failed.
    pub(super) failure: Option<Failure>,
    pub(super) make: Option<SharedMake<S>>,
    /// The number of messages begun.
    begun: u64,
    /// The number of workers made so far, or about to be made. Workers are named after it.
    spawned: u64,
    /// Workers that have not ended, by the numbers of their actors.
    pub(super) workers: HashMap<u64, Arc<Worker<S>>>,
    /// Workers without a message. The last one to become free is called first: its caches are warm.
    pub(super) free: Vec<Arc<Worker<S>>>,
    /// The number of workers made or about to be made, without those that have ended or retired.
    pub(super) active: usize,
    /// The number of workers made or about to be made, without those that have ended.
    pub(super) alive: usize,
    /// The number of workers whose state is being made, for the first time or after a failure.
    pub(super) making: usize,
    /// The number of workers that were called and have not looked.
    pub(super) called: usize,
    /// The number of workers that handle a message.
    busy: usize,
}

/// What to do after the lock is released.
#[must_use]
pub(super) enum Deferred<S: Send + 'static> {
    Nothing,
    /// Start the thread of a worker that was called.
    Start(Arc<Worker<S>>),
    /// Make a worker with this number. It is in the counts.
    Spawn(u64),
    /// End these workers, since no message is left for them.
    End(Vec<Arc<Worker<S>>>),
}

impl<S: Send + 'static> PoolCell<S> {
    pub(super) fn new(
        pool: &Pool,
        workers: Builder,
        make: SharedMake<S>,
        hooks: Hooks<S>,
    ) -> Arc<PoolCell<S>> {
        let (identity, (capacity, overflow), options) = pool.builder.plan();
        Arc::new_cyclic(|this| PoolCell {
            life: Life::new(identity),
            capacity: capacity.max(1),
            overflow,
            options,
            shared: Mutex::new(Shared::new(pool.rules.permits(), make)),
            rules: pool.rules.clone(),
            sizes: pool.sizes.clone(),
            workers,
            hooks,
            this: Weak::clone(this),
        })
    }

    /// Makes the first workers.
    pub(super) fn open(&self) {
        snapshot::enter(self.identity(), self.this.clone());
        // Counts all of them before it makes the first one, which may fail at once.
        let first: Vec<_> = {
            let mut shared = self.lock();
            (0..self.sizes.least).map(|_| shared.add_worker()).collect()
        };
        first
            .into_iter()
            .for_each(|deferred| self.perform(deferred));
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Shared<S>> {
        locked(&self.shared)
    }

    pub(super) fn arc(&self) -> Arc<PoolCell<S>> {
        self.this.upgrade().expect("who borrows it is in the count")
    }

    /// Gives back the tag of the message that the worker has handled, and takes the next one. A
    /// worker that gets none is free, or retires, or ends.
    pub(super) fn look(
        &self,
        worker: &Arc<Worker<S>>,
        held: Option<Tag>,
    ) -> Option<Entry<Item<S>>> {
        let mut shared = self.lock();
        shared.seen(worker, &self.life.ending);
        shared.give_back(held);
        if shared.phase > Phase::Closing {
            return None;
        }
        let mut leaving = self.retire(&mut shared, worker);
        let entry = match leaving.last() {
            Some(last) if Arc::ptr_eq(last, worker) => None,
            _ => shared.ready.pop(),
        };
        if entry.is_some() {
            shared.begun += 1;
            shared.busy += 1;
            worker.begins();
            self.admit(&mut shared);
        } else if shared.phase == Phase::Closing && shared.ready.waiting() == 0 {
            leaving.push(Arc::clone(worker));
        } else if leaving.last().is_none_or(|last| !Arc::ptr_eq(last, worker)) {
            shared.free.push(Arc::clone(worker));
        }
        let deferred = self.call_worker(&mut shared);
        drop(shared);
        self.perform(deferred);
        self.perform(Deferred::End(leaving));
        entry
    }

    /// Gives another work loop to a worker whose loop was broken off, unless the worker is ending.
    pub(super) fn pause(&self, worker: &Arc<Worker<S>>, held: Option<Tag>) {
        let mut shared = self.lock();
        shared.give_back(held);
        if std::thread::panicking() {
            worker.is_made.set();
            shared.making += 1;
        }
        let _ = worker.give_work(self.arc());
        let deferred = self.call_worker(&mut shared);
        drop(shared);
        self.perform(deferred);
    }

    /// Retires workers that are too many for the few messages that wait: free ones, and in the end
    /// the one that looks. Keeps the least number among ready workers, since the others may take
    /// long.
    fn retire(&self, shared: &mut Shared<S>, looks: &Arc<Worker<S>>) -> Vec<Arc<Worker<S>>> {
        let mut retired = Vec::new();
        if shared.phase != Phase::Open || shared.demand() > self.sizes.shrink_at {
            return retired;
        }
        while shared.active - shared.making > self.sizes.least {
            let free = shared.free.pop();
            let is_last = free.is_none();
            let worker = free.unwrap_or_else(|| Arc::clone(looks));
            worker.is_retired.set();
            shared.active -= 1;
            retired.push(worker);
            if is_last {
                break;
            }
        }
        retired
    }

    /// Lets waiting senders in, as many as there is room for.
    pub(super) fn admit(&self, shared: &mut Shared<S>) {
        while shared.phase == Phase::Open && shared.ready.waiting() < self.capacity {
            let Some(entry) = shared.line.admit() else {
                break;
            };
            shared.ready.push(entry, false);
        }
    }

    /// Calls a free worker, or makes one, if a message can be begun. If the pool is closed and no
    /// message is left, returns the free workers to be ended.
    pub(super) fn call_worker(&self, shared: &mut Shared<S>) -> Deferred<S> {
        if shared.phase == Phase::Closing && shared.ready.waiting() == 0 {
            return Deferred::End(core::mem::take(&mut shared.free));
        }
        if shared.phase > Phase::Closing
            || shared.ready.waiting() <= shared.called
            || !shared.ready.can_begin()
        {
            return Deferred::Nothing;
        }
        while let Some(worker) = shared.free.pop() {
            let given = worker.give_work(self.arc());
            // A worker at a message to itself comes when it is done. Another worker is called.
            if matches!(given, Given::ToIdle | Given::ToRunning) {
                worker.is_called.set();
                shared.called += 1;
            }
            match given {
                Given::ToIdle => return Deferred::Start(worker),
                Given::ToRunning => return Deferred::Nothing,
                Given::ToBusy | Given::Refused => {}
            }
        }
        // Each worker whose state is being made is expected to take as many messages.
        let enough = self.sizes.grow_at.min(self.capacity);
        let is_short = shared.demand() >= enough.saturating_mul(shared.making + 1);
        if shared.phase == Phase::Open && is_short && shared.active < self.sizes.most {
            return shared.add_worker();
        }
        Deferred::Nothing
    }

    pub(super) fn perform(&self, deferred: Deferred<S>) {
        match deferred {
            Deferred::Nothing => {}
            Deferred::Start(worker) => worker.start(),
            Deferred::Spawn(number) => self.spawn(number),
            Deferred::End(workers) => workers.iter().for_each(|worker| worker.end(Phase::Closing)),
        }
    }

    /// Makes a worker.
    fn spawn(&self, number: u64) {
        let name = format!("{}/{number}", self.identity().name());
        let make = self.lock().make.clone();
        let make = make.expect("the pool ends after this worker, which is in the counts");
        let builder = self.workers.clone().name(name);
        let actor = builder.prepare(Recipe::new(move || make(), self.hooks));
        let identity = actor.identity().clone();
        let worker = Worker::new(actor);
        let seen = Arc::downgrade(&worker);
        snapshot::enter(&identity, seen);
        let (pool, number) = (self.arc(), identity.number());
        let on_exit = move |exit: &_| pool.ended(number, exit);
        worker.actor().on_exit(on_exit);
        let mut shared = self.lock();
        let phase = shared.phase;
        shared.workers.insert(number, Arc::clone(&worker));
        let given = worker.give_work(self.arc());
        drop(shared);
        debug_assert_eq!(given, Given::ToIdle, "no other thread knows it yet");
        if phase > Phase::Closing {
            worker.end(phase);
        }
        worker.start();
    }

    /// Returns the numbers of workers.
    pub(super) fn workers(&self) -> Workers {
        let shared = self.lock();
        let (count, busy) = (shared.active, shared.busy);
        Workers { count, busy }
    }
}

impl<S: Send + 'static> Shared<S> {
    fn new(permits: usize, make: SharedMake<S>) -> Shared<S> {
        Shared {
            ready: Ready::new(permits),
            line: Line::new(),
            phase: Phase::Open,
            failure: None,
            make: Some(make),
            begun: 0,
            spawned: 0,
            workers: HashMap::new(),
            free: Vec::new(),
            active: 0,
            alive: 0,
            making: 0,
            called: 0,
            busy: 0,
        }
    }

    /// Counts a worker that is about to be made.
    pub(super) fn add_worker(&mut self) -> Deferred<S> {
        self.spawned += 1;
        self.active += 1;
        self.alive += 1;
        self.making += 1;
        Deferred::Spawn(self.spawned)
    }

    /// Notes that a worker has come to look.
    fn seen(&mut self, worker: &Worker<S>, ending: &Ending) {
        self.called -= usize::from(worker.is_called.take());
        self.making -= usize::from(worker.is_made.take());
        if worker.is_new.take() {
            ending.built();
        }
    }

    /// Gives back the tag of a message that is over.
    fn give_back(&mut self, held: Option<Tag>) {
        if let Some(tag) = held {
            self.busy -= 1;
            self.ready.give_back(tag);
        }
    }

    /// Returns the number of waiting messages, including the ones that waiting senders hold.
    fn demand(&self) -> usize {
        self.ready.waiting() + self.line.len()
    }
}

impl<S: Send + 'static> AnyOf for PoolCell<S> {
    /// `None` if another worker may be made, or is about to be. Leaves out retired workers, which
    /// take no more messages.
    fn all(&self) -> Option<Vec<u64>> {
        let shared = self.lock();
        let may_grow = shared.phase == Phase::Open && shared.active < self.sizes.most;
        let workers = shared.workers.iter();
        let all: Vec<u64> = workers
            .filter(|(_, worker)| !worker.is_retired.is_set())
            .map(|(number, _)| *number)
            .collect();
        (!may_grow && all.len() == shared.active).then_some(all)
    }
}

impl<S: Send + 'static> Actor for PoolCell<S> {
    fn life(&self) -> &Life {
        &self.life
    }

    fn this(&self) -> Arc<dyn Actor> {
        self.arc()
    }

    fn end(&self, phase: Phase) {
        self.end_with(phase, None);
    }

    fn kind(&self) -> &'static str {
        "pool"
    }

    fn load(&self) -> Load {
        let shared = self.lock();
        Load {
            begun: shared.begun,
            waiting: shared.ready.waiting(),
            senders: shared.line.len(),
        }
    }
}
