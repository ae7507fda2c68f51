//! The runner: the thread of an actor while the actor has work.
//!
//! ```text
//!   no state --recipe--> state --item--> state        a panic: no state, and
//!       ^                                               restarts left  -> pause, recipe
//!       |                                               a supervisor   -> held, until it goes on
//!       +--------- a restart ------------------         neither        -> the actor ends
//!
//!   The runner reports each state made, and each pause, to the supervisor. While the actor is held
//!   it has no state: the supervisor may rely on that when it learns of the pause.
//! ```

use super::cell::{
    ActorCell, Body, Change, Item, Options, RETRY, Threads, on_undelivered, tell_undelivered,
};
use super::handler::Context;
use super::overtime::Overtime;
use crate::error::{Exit, Failure, discard};
use crate::identity::while_working_for;
use crate::mailbox::{Batch, Next, Phase};
use crate::poison::locked;
use crate::snapshot;
use crate::time::Limit;
use pirn::thread::{self, Panic};
use std::sync::Arc;

/// Starts a thread for an actor. Until that succeeds, the items stay in the mailbox.
pub(super) fn start<S: Send>(cell: Arc<ActorCell<S>>) {
    let (threads, due) = (Threads::of(&cell.options), Due::new(cell));
    threads.start_surely(move || due.run(), RETRY.0);
}

/// A thread to be started for an actor. Owns one count of its `Arc`.
///
/// A pointer and a function, so that it does not name the type of the state, which may borrow, and
/// survives a failed start.
#[derive(Clone, Copy)]
struct Due {
    cell: *const (),
    run: unsafe fn(*const ()),
}

// SAFETY: it is an `Arc<ActorCell<S>>` in two words, and state and messages of the cell are `Send`.
unsafe impl Send for Due {}

impl Due {
    fn new<S: Send>(cell: Arc<ActorCell<S>>) -> Due {
        /// # Safety
        /// The pointer comes from `Arc::into_raw` of a cell of this type, and is used once.
        unsafe fn run_raw<S: Send>(cell: *const ()) {
            // SAFETY: the caller's contract.
            run(unsafe { Arc::from_raw(cell.cast::<ActorCell<S>>()) });
        }
        Due {
            cell: Arc::into_raw(cell).cast(),
            run: run_raw::<S>,
        }
    }

    /// Runs the actor. Called once among all copies, on the thread that was started.
    fn run(self) {
        // SAFETY: `new` pairs the pointer with the function of its type, and this is the only call.
        // What the actor borrows is borrowed until its end is published, by the contract of
        // `ActorCell::borrowing`, which its callers uphold; `end` drops state and messages before
        // that.
        unsafe { (self.run)(self.cell) }
    }
}

/// Why the runner leaves.
enum Leave {
    /// For now.
    Pause,
    /// For good.
    End(Exit),
}

/// Works on an actor's messages until none is left.
fn run<S: Send>(cell: Arc<ActorCell<S>>) {
    let thread = thread::current();
    let context = Context::new(cell);
    let cell = context.cell();
    while_working_for(&**cell, || {
        let mut body = locked(&cell.body);
        let mut batch = if body.state.is_some() {
            Batch::of(thread)
        } else {
            cell.mailbox.enter(thread); // A kill interrupts the recipe.
            Batch::new()
        };
        match work(cell, &mut body, &context, &mut batch) {
            Leave::Pause => {}
            Leave::End(exit) => end(cell, &mut body, batch, exit),
        }
    });
}

fn work<S: Send>(
    cell: &ActorCell<S>,
    body: &mut Body<S>,
    context: &Context<S>,
    batch: &mut Batch<Item<S>>,
) -> Leave {
    let rare = cell.options.as_deref();
    let least_between = rare.and_then(|rare| rare.least_between);
    loop {
        if body.state.is_none() && cell.mailbox.goes_on() {
            match body.recipe.make(context) {
                Ok(state) => {
                    body.state = Some(state);
                    cell.life.ending.built();
                    cell.supervised(Change::Ready);
                }
                Err(failure) => match failed(cell, body, batch, failure) {
                    None => continue,
                    Some(leave) => return leave,
                },
            }
        }
        let item = match cell.mailbox.next(batch) {
            Next::Item(item) => item,
            Next::Idle => return Leave::Pause,
            Next::Held => {
                // The supervisor restarts this actor together with another one.
                let failure = body.recipe.stop(body.state.take(), &Exit::Stopped);
                cell.life.ending.stop_watching();
                cell.supervised(Change::Held(failure));
                return Leave::Pause;
            }
            Next::End(phase) => return Leave::End(exit(phase)),
        };
        if !item.is_wanted() {
            discard(item);
            continue;
        }
        let state = body
            .state
            .as_mut()
            .expect("it has been made, or the actor ends");
        let earliest = least_between.map(Limit::after);
        if let Some(failure) = deliver(cell, item, state, context)
            && let Some(leave) = failed(cell, body, batch, failure)
        {
            return leave;
        }
        if let Some(earliest) = earliest {
            cell.mailbox.rest(batch, earliest);
        }
    }
}

/// Handles an item. Returns the failure if the handler panicked or took too long.
fn deliver<S: Send>(
    cell: &ActorCell<S>,
    item: Item<S>,
    state: &mut S,
    context: &Context<S>,
) -> Option<Failure> {
    let rare = cell.options.as_deref();
    let overtime = rare.and_then(|rare| rare.overtime.as_ref());
    let overtime = overtime.map(|overtime| overtime.begin(item.name()));
    let outcome = Panic::catch(|| item.deliver(state, context));
    let late = overtime.and_then(Overtime::end);
    cell.mailbox.clear_interrupt();
    late.or(outcome.err().map(|panic| Failure::from(&panic)))
}

/// Returns the exit of an actor that ends in this phase.
pub(crate) fn exit(phase: Phase) -> Exit {
    match phase {
        Phase::Open | Phase::Closing | Phase::Ended => Exit::Closed,
        Phase::Stopping => Exit::Stopped,
        Phase::Killing => Exit::Killed,
        Phase::Overflowing => Exit::Failed(Failure::new("its mailbox was full")),
    }
}

/// Stops and drops the state after a failure. Returns `None` if the recipe is to make another one.
fn failed<S: Send>(
    cell: &ActorCell<S>,
    body: &mut Body<S>,
    batch: &mut Batch<Item<S>>,
    failure: Failure,
) -> Option<Leave> {
    let how = Exit::Failed(failure.clone());
    // A panic of the hook is the second failure of this state. The first one counts.
    let _ = body.recipe.stop(body.state.take(), &how);
    cell.life.ending.stop_watching();
    let rare = cell.options.as_deref();
    if let Some(restarts) = rare.and_then(|rare| rare.restarts.as_ref())
        && let Some(pause) = body.recipe.restart(restarts)
    {
        if cell.mailbox.goes_on() {
            // A kill ends the pause early, and so does a supervisor that holds the actor.
            let _ = thread::sleep_interruptible(pause);
        }
        return None;
    }
    let reporter = rare.and_then(|rare| rare.supervisor.as_ref());
    if reporter.is_some_and(|reporter| reporter.holds) {
        return Some(match cell.mailbox.pause(batch) {
            Next::End(phase) => Leave::End(exit(phase)),
            _ => {
                cell.supervised(Change::Held(Some(failure)));
                Leave::Pause
            }
        });
    }
    Some(Leave::End(how))
}

/// Reports the messages that were never begun by their names, and drops them.
pub(crate) fn undelivered<T>(
    left: impl Iterator<Item = T>,
    name: impl Fn(&T) -> &'static str,
    options: &Options,
) {
    let on_undelivered = on_undelivered(options);
    for item in left {
        tell_undelivered(on_undelivered, name(&item));
        discard(item);
    }
}

fn end<S: Send>(cell: &ActorCell<S>, body: &mut Body<S>, batch: Batch<Item<S>>, exit: Exit) {
    let failure = body.recipe.stop(body.state.take(), &exit);
    let exit = failure.map_or(exit, Exit::Failed);
    undelivered(cell.mailbox.finish(batch), Item::name, &cell.options);
    discard(core::mem::replace(
        &mut body.recipe,
        super::recipe::Recipe::NONE,
    ));
    snapshot::forget(&cell.life.identity);
    cell.life.ending.publish(&exit);
}

/// Ends an idle actor on the running thread, if no other thread can tell that from an end on a
/// thread of its own: a default actor, with nothing to drop and no watcher to call. Returns true if
/// the actor has ended.
pub(super) fn end_idle<S: Send>(cell: &ActorCell<S>, phase: Phase) -> bool {
    if core::mem::needs_drop::<S>() || cell.options.is_some() {
        return false;
    }
    // A runner that is leaving holds the lock a moment longer.
    let Ok(body) = cell.body.try_lock() else {
        return false;
    };
    let ends = || snapshot::forget_if(&cell.life.identity, || cell.mailbox.end_idle());
    body.recipe.is_none() && cell.life.ending.publish_unwatched(exit(phase), ends)
}

impl<S: Send> ActorCell<S> {
    /// Reports a change to the supervisor, if there is one.
    fn supervised(&self, change: Change) {
        let rare = self.options.as_deref();
        if let Some(reporter) = rare.and_then(|rare| rare.supervisor.as_ref()) {
            reporter.changed(change);
        }
    }
}
