//! A name that is held again and again, by one actor after the other.
//!
//! ```text
//!   another has it --a pause--> asked for --taken--> an actor is made, and served
//!         ^                        |  ^                        |
//!         +---------- no ----------+  +---- it has ended ------+
//! ```

use super::actor::Served;
use super::registration::{Registration, Serving};
use super::task::Task;
use crate::error::NodeError;
use crate::node::Shared;
use crate::poison::locked;
use core::fmt;
use core::time::Duration;
use pirn::thread::{self, Panic};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// How long giving the name back may take.
const RELEASE: Duration = Duration::from_secs(10);

/// A name that this node holds whenever it can: made by [`Node::hold`](crate::Node::hold). That
/// goes on when this is dropped.
#[derive(Clone)]
pub struct Holding {
    state: Arc<State>,
    task: Arc<Task>,
}

#[derive(Default)]
struct State {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Default)]
struct Now {
    is_over: bool,
    /// The actor that is served, until it ends.
    serving: Option<Serving>,
    /// The number of the last actor that has ended.
    ended: u64,
}

impl State {
    fn change(&self, change: impl FnOnce(&mut Now)) {
        change(&mut locked(&self.now));
        self.changed.notify_all();
    }

    /// Waits until `is_over` holds, or the holding is over, for as long as `pause`. Returns true if
    /// it goes on.
    fn wait(&self, pause: Duration, is_over: impl Fn(&Now) -> bool) -> bool {
        let now = locked(&self.now);
        let waits = |now: &mut Now| !now.is_over && !is_over(now);
        let waited = self.changed.wait_timeout_while(now, pause, waits);
        let (now, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !now.is_over
    }
}

impl Holding {
    pub(crate) fn begin<A: Served>(
        shared: &Arc<Shared>,
        name: &str,
        make: impl FnMut() -> A + Send + 'static,
        accepts: impl Fn(Registration<A>) -> Registration<A> + Send + 'static,
    ) -> Result<Holding, NodeError> {
        let state = Arc::new(State::default());
        let over = Arc::clone(&state);
        let task = Arc::new(Task::new(Box::new(move || {
            over.change(|now| now.is_over = true)
        })));
        shared.add(&task)?;
        let holding = Holding { state, task };
        let (holds, shared, name) = (holding.clone(), Arc::clone(shared), name.to_string());
        let hold = move || {
            let _ = Panic::catch(|| holds.hold(&shared, &name, make, accepts));
            holds.task.over();
        };
        let thread = thread::Builder::new().name("nats holding".to_string());
        thread.spawn(hold).map_err(NodeError::unavailable)?;
        Ok(holding)
    }

    fn hold<A: Served>(
        &self,
        shared: &Arc<Shared>,
        name: &str,
        mut make: impl FnMut() -> A,
        accepts: impl Fn(Registration<A>) -> Registration<A>,
    ) {
        let state = &self.state;
        let mut made = 0;
        loop {
            let registered = Registration::named(shared, name, || {
                let (actor, state) = (make(), Arc::clone(state));
                made += 1;
                let number = made;
                actor.on_exit(move |_| state.change(|now| now.ended = now.ended.max(number)));
                actor
            });
            if let Ok(registration) = registered {
                let serving = accepts(registration).serve();
                state.change(|now| now.serving = Some(serving.clone()));
                state.wait(Duration::MAX, |now| now.ended == made);
                // Of an actor that has ended, the name is free when this returns.
                serving.release();
                state.change(|now| now.serving = None);
            }
            if !state.wait(shared.lease / 10, |_| false) {
                return;
            }
        }
    }

    /// Returns true if this node has the name now, and no other can have it.
    pub fn is_held(&self) -> bool {
        let now = locked(&self.state.now);
        now.serving.as_ref().is_some_and(Serving::is_held)
    }

    /// Returns the fencing number of the lease if this node has the name now: see
    /// [`Registration::fence`].
    pub fn fence(&self) -> Option<u64> {
        let now = locked(&self.state.now);
        let held = now.serving.as_ref().filter(|serving| serving.is_held());
        held.and_then(Serving::fence)
    }

    /// Gives the name up, if this node has it, and does not ask for it again. The actor gets what
    /// has been sent to it already, and is closed unless others have references to it.
    pub fn release(&self) {
        self.task.stop();
        self.task.join(RELEASE);
    }
}

impl fmt::Debug for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holding")
            .field("fence", &self.fence())
            .finish_non_exhaustive()
    }
}
