//! Pipelines: actors in a row, each of which works on the answers of the one before.
//!
//! ```text
//!   send, ask          answer            answer           answer
//!   ---------> [ parse ] ---> [ highlight ] ---> [ render ] ---> the asker
//!                       <- no room: waits -
//! ```
//!
//! A pipeline is not an actor, and has no thread: a message carries the rest of its route
//! ([`Passed`]), and each stage hands its own answer on. So the stages work at the same time, and a
//! stage without room blocks the one before it, and in the end the sender.
//!
//! An asker waits for each stage that its message has not passed. So a stage notes in [`Way`] when
//! it hands the message on, and the search finds a circle when one of the stages left asks the
//! asker.
//!
//! Each message keeps the stages that it has not passed open. So a pipeline without any address
//! left is closed in order.
//!
//! Rejected: an actor at each joint, which asks one stage and sends to the next. It costs a mailbox
//! and a switch of threads per message, and its stage is idle while it sends.

use crate::actor::{Address, Handler, Onward, Passed, Receive, Ref};
use crate::edges::{To, Way};
use crate::ending::Watching;
use crate::error::{AskError, Exit, SendError};
use crate::identity::Identity;
use crate::life::{Actor, Life, Load};
use crate::mailbox::{Patience, Phase};
use crate::poison::locked;
use crate::reply::{self, Reply};
use crate::time::Limit;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Two stages, each of which may be a pipeline again.
struct Line<M: 'static, A: 'static, R: 'static> {
    first: Address<M, A>,
    next: Address<A, R>,
    identity: Identity,
    /// The end of all stages. Made at the first call that needs it.
    whole: OnceLock<Arc<Whole>>,
}

impl<M: 'static, A: 'static, R: 'static> Drop for Line<M, A, R> {
    fn drop(&mut self) {
        if let Some(whole) = self.whole.get() {
            // Release: pairs with the Acquire in `unwatched`: no watcher is added to the line after
            // this.
            whole.is_left.store(true, Ordering::Release);
            whole.unwatched();
        }
    }
}

/// The end of a pipeline. The stages report theirs to it, and so keep it until all have ended, or
/// until the pipeline and all of its watchers are dropped.
struct Whole {
    life: Life,
    this: Weak<Whole>,
    /// The pipeline is dropped.
    is_left: AtomicBool,
    /// Its watches on the stages. `None` when it has stopped watching.
    stages: Mutex<Option<Vec<Watching>>>,
}

impl Whole {
    fn new(identity: Identity) -> Arc<Whole> {
        Arc::new_cyclic(|this| Whole {
            life: Life::new(identity),
            this: Weak::clone(this),
            is_left: AtomicBool::new(false),
            stages: Mutex::new(Some(Vec::new())),
        })
    }

    /// Sets a function to be called when a stage ends, unless this has stopped watching.
    fn watch(&self, stage: &(dyn Actor + 'static), watcher: impl FnOnce(&Exit) + Send + 'static) {
        let watching = Watching::begin(&stage.this(), Box::new(watcher));
        if let Some(stages) = &mut *locked(&self.stages) {
            return stages.push(watching);
        }
        drop(watching);
    }
}

impl Actor for Whole {
    fn life(&self) -> &Life {
        &self.life
    }

    fn this(&self) -> Arc<dyn Actor> {
        self.this.upgrade().expect("the caller has it")
    }

    fn end(&self, _: Phase) {
        unreachable!("references are to the row");
    }

    fn kind(&self) -> &'static str {
        "pipeline"
    }

    fn load(&self) -> Load {
        Load::default()
    }

    fn unwatched(&self) {
        // Acquire: pairs with the Release in the drop of the line.
        if self.is_left.load(Ordering::Acquire) && self.life.ending.watchers() == 0 {
            let stages = locked(&self.stages).take();
            drop(stages);
        }
    }
}

/// Hands the answer of one stage to the next.
struct ToNext<A: 'static, R: 'static> {
    next: Address<A, R>,
    onward: Box<dyn Onward<R>>,
    limit: Limit,
}

impl<A: Send, R: Send> Onward<A> for ToNext<A, R> {
    fn is_wanted(&self) -> bool {
        self.onward.is_wanted()
    }

    fn is_asked(&self) -> bool {
        self.onward.is_asked()
    }

    fn displace(&mut self) {
        self.onward.displace();
    }

    fn note_joint(&self) {
        self.onward.note_joint();
    }

    fn take(self: Box<Self>, answer: Result<A, AskError>) -> bool {
        let ToNext {
            next,
            onward,
            limit,
        } = *self;
        let message = match answer {
            Ok(message) => message,
            Err(error) => return onward.take(Err(error)),
        };
        let is_asked = onward.is_asked();
        onward.note_joint();
        let passed = Passed {
            message,
            onward,
            limit,
        };
        let patience = Patience::Until(limit);
        next.receiver().pass(passed, patience).is_ok() || is_asked
    }
}

impl<M: Send + 'static, A: Send + 'static, R: Send + 'static> Line<M, A, R> {
    fn whole(&self) -> &Arc<Whole> {
        self.whole.get_or_init(|| {
            let whole = Whole::new(self.identity.clone());
            let (told, next) = (Arc::clone(&whole), self.next.this());
            let first_has_ended = move |first: &Exit| {
                let (first, all) = (first.clone(), Arc::clone(&told));
                let next_has_ended = move |next: &Exit| match first {
                    Exit::Closed => all.life.ending.publish(next),
                    other => all.life.ending.publish(&other),
                };
                told.watch(&*next, next_has_ended);
            };
            whole.watch(&*self.first, first_has_ended);
            whole
        })
    }
}

impl<M: Send + 'static, A: Send + 'static, R: Send + 'static> Actor for Line<M, A, R> {
    fn life(&self) -> &Life {
        &self.whole().life
    }

    /// Returns the `Whole`, not the line: the end may come after the line is dropped.
    fn this(&self) -> Arc<dyn Actor> {
        Arc::clone(self.whole()) as Arc<_>
    }

    fn end(&self, phase: Phase) {
        if phase > Phase::Closing {
            // The last stage first: the others hand their answers to a stage that takes none.
            self.next.end(phase);
            return self.first.end(phase);
        }
        self.first.end(phase);
        let next = Arc::clone(self.next.receiver());
        self.first.on_exit(move |_| next.end(Phase::Closing));
    }

    fn kind(&self) -> &'static str {
        "pipeline"
    }

    fn load(&self) -> Load {
        Load {
            waiting: self.first.len() + self.next.len(),
            ..Load::default()
        }
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    // The line owns addresses of the stages. They are counted there, and dropped with the line.
    fn retain(&self) {}
    fn release(&self) {}
}

impl<M: Send + 'static, A: Send + 'static, R: Send + 'static> Receive<M, R> for Line<M, A, R> {
    fn request(&self, message: M, limit: Limit) -> Result<Reply<R>, SendError<M>> {
        let mut stages = Vec::new();
        self.stages(&mut stages);
        let way = Arc::new(Way::new(stages));
        let (to, reply) = reply::pair(Some(To::Way(Arc::clone(&way))));
        let passed = Passed::asked(message, to, Some(way), limit);
        self.pass(passed, Patience::Until(limit))?;
        Ok(reply)
    }

    fn pass(&self, passed: Passed<M, R>, patience: Patience) -> Result<(), SendError<M>> {
        let onward = ToNext {
            next: self.next.clone(),
            onward: passed.onward,
            limit: passed.limit,
        };
        let passed = Passed::new(passed.message, onward, passed.limit);
        self.first.receiver().pass(passed, patience)
    }

    fn stages(&self, stages: &mut Vec<To>) {
        self.first.receiver().stages(stages);
        self.next.receiver().stages(stages);
    }
}

impl<M: Send, A: Send> Address<M, A> {
    /// Returns the address of a pipeline: this actor's answers are messages to the next one, whose
    /// answers are the answers of the pipeline. `next` is an `&Address` or a `&Ref`, and may be a
    /// pipeline.
    ///
    /// The stages work at the same time, on different messages. A stage that finds no room for its
    /// answer in the next mailbox waits, and begins no other message meanwhile: so a slow stage
    /// blocks the sender as soon as the mailboxes before it are full. Messages of one sender stay
    /// in order.
    ///
    /// - An *ask* of the pipeline gets the last stage's answer. Its deadline holds at each stage.
    ///   If a stage fails, is gone, or refuses the message, the ask ends with that error.
    /// - A *sent* message ends with the last stage. If a stage does not take the answer of the one
    ///   before it, the [`on_undelivered`](crate::Builder::on_undelivered) of the one before is
    ///   called.
    /// - `close` closes the stages in order, even if other code uses them: each stage handles its
    ///   messages, and then the next is closed. `stop` and `kill` reach all stages at once. To drop
    ///   the address of the pipeline is to drop one address of each stage.
    /// - `join`, `monitor` and the like wait for the end of all stages. The exit is the exit of the
    ///   first stage that was not closed, or [`Exit::Closed`].
    /// - An actor that asks the pipeline waits for each stage that its message has not passed: a
    ///   circle of waiting actors through one of these is found.
    ///
    /// Any other receiver that can be [asked](crate::address::Ask) becomes a stage through a
    /// function that asks it.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{self as actor, Exit};
    ///
    /// let parse = actor::function(|text: String| text.split(' ').map(String::from).collect());
    /// let highlight = actor::function(|words: Vec<String>| words.join("* *"));
    /// let render = actor::function(|text: String| format!("<p>*{text}*</p>"));
    ///
    /// let publish = parse.then(&highlight).then(&render);
    /// assert_eq!(publish.ask("two words".to_string()).unwrap(), "<p>*two* *words*</p>");
    /// publish.close();
    /// assert_eq!(publish.join(), Exit::Closed);
    /// assert_eq!(render.exit(), Some(Exit::Closed));
    /// ```
    pub fn then<R: Send>(&self, next: impl Into<Address<A, R>>) -> Address<M, R> {
        let (first, next) = (self.clone(), next.into());
        let name = format!("{} > {}", first.name(), next.name());
        Address::adopt(Arc::new(Line {
            first,
            next,
            identity: Identity::new(Some(name.into())),
            whole: OnceLock::new(),
        }))
    }
}

impl<S: Send + 'static> Ref<S> {
    /// Returns the address of a pipeline, as [`Address::then`] does. The type of its messages is
    /// inferred, or given by the type of the result.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{self as actor, Address, Context, Handler};
    ///
    /// struct Parser;
    /// impl Handler<String> for Parser {
    ///     type Reply = i64;
    ///     fn handle(&mut self, text: String, _: &Context<Self>) -> i64 {
    ///         text.parse().unwrap_or(0)
    ///     }
    /// }
    /// let double = actor::function(|number: i64| 2 * number);
    /// let doubled: Address<String, i64> = actor::spawn(Parser).then(&double);
    /// assert_eq!(doubled.ask("21".to_string()), Ok(42));
    /// ```
    pub fn then<M, R>(&self, next: impl Into<Address<S::Reply, R>>) -> Address<M, R>
    where
        S: Handler<M, Reply: 'static>,
        M: Send + 'static,
        R: Send + 'static,
    {
        self.address::<M>().then(next)
    }
}

impl<M, R> From<&Address<M, R>> for Address<M, R> {
    /// Returns a clone.
    fn from(address: &Address<M, R>) -> Address<M, R> {
        address.clone()
    }
}

impl<S, M, R> From<&Ref<S>> for Address<M, R>
where
    S: Handler<M, Reply = R> + Send + 'static,
    M: Send + 'static,
    R: Send + 'static,
{
    /// Returns [`Ref::address`].
    fn from(actor: &Ref<S>) -> Address<M, R> {
        actor.address()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn watchers<M, R>(stage: &Address<M, R>) -> usize
    where
        M: Send + 'static,
        R: Send + 'static,
    {
        stage.life().ending.watchers()
    }

    #[test]
    fn a_row_that_nobody_watches_any_more_leaves_nothing_behind() {
        let stages = [(); 3].map(|()| crate::function(|n: u32| n));
        let row = || stages[0].then(&stages[1]).then(&stages[2]);
        for row_first in [true, false] {
            let (row, other) = (row(), row());
            let monitors = [row.monitor(), row.monitor()];
            assert_eq!((row.exit(), other.exit()), (None, None));
            assert_eq!(watchers(&stages[0]), 2);
            match row_first {
                true => drop((row, monitors)),
                false => drop((monitors, row)),
            }
            assert_eq!(watchers(&stages[0]), 1, "the other row's");
            drop(other);
            assert!(stages.iter().all(|stage| watchers(stage) == 0));
        }
    }

    #[test]
    fn a_row_that_is_watched_tells_of_its_end_when_it_is_dropped() {
        let stages = [(); 3].map(|()| crate::function(|n: u32| n));
        let row = stages[0].then(&stages[1]).then(&stages[2]);
        let (monitor, (tell, told)) = (row.monitor(), channel());
        row.on_exit(move |exit| tell.send(exit.clone()).unwrap());
        drop((row, stages));
        assert_eq!(monitor.recv().unwrap(), Exit::Closed);
        assert_eq!(told.recv(), Ok(Exit::Closed));
    }
}
