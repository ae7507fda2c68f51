//! The thread of an actor, for as long as there is work.
//!
//! ```text
//!   no state --recipe--> state --item--> state        a panic: no state, and
//!       ^                                               restarts left  -> pause, recipe
//!       |                                               a supervisor   -> told; held until released
//!       +--------- a restart ------------------         neither        -> the actor ends
//! ```

use super::cell::{Body, Cell};
use super::context::Context;
use crate::error::{Exit, Failure};
use crate::identity::Works;
use crate::mailbox::{Batch, Next, Phase};
use crate::poison::locked;
use crate::time::Limit;
use crate::{snapshot, time};
use core::time::Duration;
use pirn::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How long an actor that gets no thread waits for one, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// Starts a thread for an actor. What is in its mailbox stays there if none can be had, and another
/// attempt is made soon.
pub(super) fn start<S: Send + 'static>(cell: Arc<Cell<S>>) {
    attempt(cell, RETRY.0);
}

fn attempt<S: Send + 'static>(cell: Arc<Cell<S>>, retry: Duration) {
    let again = Arc::clone(&cell);
    if cell
        .options
        .threads
        .clone()
        .start(move || run(cell))
        .is_err()
    {
        time::timers::after(retry, move || attempt(again, (retry * 2).min(RETRY.1)));
    }
}

/// Why the runner leaves.
enum Leave {
    /// For now.
    Pause,
    /// For good.
    End(Exit),
}

/// Works on an actor's messages until there are none.
pub(super) fn run<S: Send>(cell: Arc<Cell<S>>) {
    let _works = Works::for_actor(&cell.identity);
    cell.mailbox.enter(thread::current());
    let context = Context::new(cell);
    let cell = context.cell();
    let mut batch = Batch::new();
    let mut body = locked(&cell.body);
    match work(cell, &mut body, &context, &mut batch) {
        Leave::Pause => {}
        Leave::End(exit) => end(cell, &mut body, batch, exit),
    }
}

fn work<S: Send>(
    cell: &Cell<S>,
    body: &mut Body<S>,
    context: &Context<S>,
    batch: &mut Batch<super::Item<S>>,
) -> Leave {
    let rare = cell.options.rare.as_deref();
    let least_between = rare.and_then(|rare| rare.least_between);
    loop {
        if body.state.is_none() && cell.mailbox.phase() <= Phase::Closing {
            match body.recipe.make() {
                Ok(state) => {
                    body.state = Some(state);
                    cell.ending.built();
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
                // A supervisor restarts it together with another one.
                discard(body.state.take());
                cell.supervised(Failure::new("restarted with another actor"));
                return Leave::Pause;
            }
            Next::End(phase) => return Leave::End(exit(phase)),
        };
        if !item.is_wanted() {
            continue;
        }
        let state = body
            .state
            .as_mut()
            .expect("it has been made, or the actor ends");
        let earliest = least_between.map(Limit::after);
        let outcome = catch_unwind(AssertUnwindSafe(|| item.deliver(state, context)));
        cell.mailbox.clear_interrupt();
        if let Err(payload) = outcome
            && let Some(leave) = failed(cell, body, batch, Failure::of_panic(payload).0)
        {
            return leave;
        }
        if let Some(earliest) = earliest {
            cell.mailbox.rest(batch, earliest);
        }
    }
}

fn exit(phase: Phase) -> Exit {
    match phase {
        Phase::Open | Phase::Closing | Phase::Ended => Exit::Closed,
        Phase::Stopping => Exit::Stopped,
        Phase::Killing => Exit::Killed,
        Phase::Overflowing => Exit::Failed(Failure::new("its mailbox was full")),
    }
}

/// Gives the state up after a failure. Returns nothing if the recipe is to make another one.
fn failed<S: Send>(
    cell: &Cell<S>,
    body: &mut Body<S>,
    batch: &mut Batch<super::Item<S>>,
    failure: Failure,
) -> Option<Leave> {
    discard(body.state.take());
    let rare = cell.options.rare.as_deref();
    if let Some(restarts) = rare.and_then(|rare| rare.restarts.as_ref())
        && let Some(pause) = body.recipe.restart(restarts)
    {
        // A kill ends it early.
        let _ = thread::sleep_interruptible(pause);
        return None;
    }
    if rare.is_some_and(|rare| rare.on_failure.is_some()) {
        return Some(match cell.mailbox.pause(batch) {
            Next::End(phase) => Leave::End(exit(phase)),
            _ => {
                cell.supervised(failure);
                Leave::Pause
            }
        });
    }
    Some(Leave::End(Exit::Failed(failure)))
}

/// Drops what is the program's. Its panic has been reported by the hook, and must not keep the
/// runner from the rest of its work.
fn discard<T>(of_the_program: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(of_the_program)));
}

fn end<S: Send>(cell: &Cell<S>, body: &mut Body<S>, batch: Batch<super::Item<S>>, exit: Exit) {
    let left = cell.mailbox.finish(batch);
    let on_undelivered = cell
        .options
        .rare
        .as_deref()
        .and_then(|rare| rare.on_undelivered.as_ref());
    for item in left {
        if let Some(tell) = on_undelivered {
            discard(catch_unwind(AssertUnwindSafe(|| tell(item.name()))));
        }
        discard(item);
    }
    discard(body.state.take());
    discard(core::mem::replace(
        &mut body.recipe,
        super::recipe::Recipe::NONE,
    ));
    snapshot::forget(&cell.identity);
    cell.ending.publish(&exit);
}

impl<S: Send> Cell<S> {
    /// Tells the supervisor of a failure.
    fn supervised(&self, failure: Failure) {
        if let Some(tell) = self
            .options
            .rare
            .as_deref()
            .and_then(|rare| rare.on_failure.as_ref())
        {
            tell(failure);
        }
    }
}
