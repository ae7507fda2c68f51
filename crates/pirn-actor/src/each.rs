//! An actor that starts a thread for each message, and has no mailbox.
//!
//! ```text
//!   senders --> line --> | room? | --> inside: a limited number of messages, each on its thread
//! ```
//!
//! A message goes in if there is room. Otherwise it waits in line with its sender, or the actor's
//! overflow drops or refuses it. A closed actor lets no message in, and ends when the last message
//! inside is over. A kill interrupts the threads of all messages inside. It does so without the
//! lock, since the threads' interrupt callbacks may use the actor. The messages stay inside until
//! all are interrupted, so no interrupt comes late.
//!
//! The threads work for no actor: the wait of one of them does not stop the others, so they have no
//! edges for the deadlock search.

use crate::actor::{Address, Builder, Passed, RETRY, Receive, Threads, exit};
use crate::error::{Refusal, SendError, discard};
use crate::life::{Actor, Life, Load};
use crate::mailbox::{Admission, Line, Overflow, Patience, Phase};
use crate::poison::{locked, wait_while};
use crate::reply::{self, Reply};
use crate::snapshot;
use crate::time::Limit;
use pirn::thread::{self, Thread};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, Weak};

/// Makes an actor that calls `f` for each message on a new virtual thread, and answers with the
/// result. It handles up to 1,024 messages at the same time, in no order: [`Builder::each`] sets
/// other limits.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
///
/// let length = actor::flow::each(|url: String| url.len()); // gets the page, say
/// let urls = ["https://a.example", "https://b.example/page"].map(String::from);
/// let replies = urls.map(|url| length.ask_later(url).unwrap()); // both at once
/// assert_eq!(replies.map(|reply| reply.recv().unwrap()), [17, 22]);
/// ```
pub fn each<M, R, F>(f: F) -> Address<M, R>
where
    M: Send + 'static,
    R: Send + 'static,
    F: Fn(M) -> R + Send + Sync + 'static,
{
    Builder::new().each(f)
}

impl Builder {
    /// Makes an actor that calls `f` for each message on a new thread, and answers with the result.
    /// It handles messages at the same time, in no order.
    ///
    /// The builder's capacity is the number of messages handled at the same time, and its overflow
    /// says what happens to others: by default their senders wait. No message waits without its
    /// sender, so both [`DropOld`](crate::Overflow::DropOld) and
    /// [`DropNew`](crate::Overflow::DropNew) drop the new one. Urgent messages are handled at once.
    ///
    /// A panic concerns its message only: the asker gets [`AskError::Failed`](crate::AskError), and
    /// the actor continues. So [`restarts`](Builder::restarts) have no meaning here.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::Builder;
    ///
    /// let ten_at_once = Builder::new().name("fetch").capacity(10).each(|url: String| url.len());
    /// for page in 0..100 {
    ///     ten_at_once.send(format!("https://a.example/{page}")).unwrap(); // waits if ten are at it
    /// }
    /// ten_at_once.close();
    /// ten_at_once.join(); // all are over
    /// ```
    pub fn each<M, R, F>(&self, f: F) -> Address<M, R>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: Fn(M) -> R + Send + Sync + 'static,
    {
        let (identity, (capacity, overflow), options) = self.plan();
        let each = Arc::new_cyclic(|this| Each {
            life: Life::new(identity),
            capacity: capacity.max(1),
            overflow,
            threads: Threads::of(&options),
            state: Mutex::new(State {
                f: Some(Arc::new(f)),
                phase: Phase::Open,
                interrupts: false,
                inside: 0,
                begun: 0,
                threads: HashMap::new(),
                line: Line::new(),
            }),
            interrupted: Condvar::new(),
            this: Weak::clone(this),
        });
        snapshot::enter(each.identity(), each.this.clone());
        Address::adopt(each)
    }
}

struct Each<F> {
    life: Life,
    capacity: usize,
    overflow: Overflow,
    threads: Threads,
    state: Mutex<State<F>>,
    /// Notified when the threads inside have been interrupted.
    interrupted: Condvar,
    this: Weak<Each<F>>,
}

struct State<F> {
    /// `None` when the actor has ended.
    f: Option<Arc<F>>,
    phase: Phase,
    /// A kill is interrupting the threads inside.
    interrupts: bool,
    /// The number of messages that are inside.
    inside: usize,
    /// The number of messages begun.
    begun: u64,
    /// The threads of the messages that have begun and are not over.
    threads: HashMap<u64, Thread>,
    /// Senders that wait for room.
    line: Line<()>,
}

impl<F: Send + Sync + 'static> Each<F> {
    /// Lets the running thread's message in. Returns false if overflow drops it.
    fn enter(&self, patience: Patience) -> Result<bool, Refusal> {
        let mut state = locked(&self.state);
        let is_full = state.inside >= self.capacity || !state.line.is_empty();
        let limit = match self.overflow.admit(state.phase, is_full, patience) {
            Admission::In => {
                state.inside += 1;
                return Ok(true);
            }
            Admission::Wait(limit) => limit,
            Admission::Refuse(refusal) => return Err(refusal),
            Admission::DropNew | Admission::DropOld => return Ok(false),
            Admission::Stop => {
                drop(state);
                self.end(Phase::Overflowing);
                return Err(Refusal::Closed);
            }
        };
        let ticket = state.line.enter(());
        drop(state);
        let refusal = ticket.wait(limit);
        let left = locked(&self.state).line.leave(&ticket);
        left.map_or(Ok(true), |()| Err(refusal))
    }

    fn run<M, R>(&self, job: Passed<M, R>)
    where
        F: Fn(M) -> R,
    {
        let (number, f) = self.begin();
        // The asker knows of a failure, and the panic hook has reported it.
        let run = || job.run(|message| f(message), None);
        let _ = self.identity().while_shown(run);
        discard(f);
        self.leave(number);
    }

    /// Begins a message on the running thread. Returns its number, and the function that handles
    /// it.
    fn begin(&self) -> (u64, Arc<F>) {
        let thread = thread::current();
        let mut state = locked(&self.state);
        state.begun += 1;
        let number = state.begun;
        state.threads.insert(number, thread.clone());
        let is_killed = state.phase == Phase::Killing;
        let f = state.f.clone();
        drop(state);
        if is_killed {
            thread.interrupt();
        }
        (
            number,
            f.expect("it is there as long as a message is inside"),
        )
    }

    /// Takes the message with this number out, which is over on the running thread, and lets the
    /// next one in.
    fn leave(&self, number: u64) {
        let state = locked(&self.state);
        let mut state = wait_while(&self.interrupted, state, |state| state.interrupts);
        state.threads.remove(&number);
        if state.phase == Phase::Killing {
            // The interrupt was for this message.
            thread::take_interrupt();
        }
        state.inside -= 1;
        while state.phase == Phase::Open
            && state.inside < self.capacity
            && state.line.admit().is_some()
        {
            state.inside += 1;
        }
        drop(state);
        self.end_if_over();
    }

    /// Ends the actor if it is closed and no message is inside.
    fn end_if_over(&self) {
        let (exit, f) = {
            let mut state = locked(&self.state);
            if state.inside > 0 || matches!(state.phase, Phase::Open | Phase::Ended) {
                return;
            }
            let phase = core::mem::replace(&mut state.phase, Phase::Ended);
            (exit(phase), state.f.take())
        };
        discard(f);
        snapshot::forget(self.identity());
        self.life.ending.publish(&exit);
    }
}

impl<F: Send + Sync + 'static> Actor for Each<F> {
    fn life(&self) -> &Life {
        &self.life
    }

    fn this(&self) -> Arc<dyn Actor> {
        self.this.upgrade().expect("the caller has it")
    }

    fn end(&self, phase: Phase) {
        let inside: Vec<_> = {
            let mut state = locked(&self.state);
            if state.phase >= phase {
                return;
            }
            state.phase = phase;
            state.line.wake_all();
            state.interrupts |= phase == Phase::Killing;
            state.threads.values().cloned().collect()
        };
        if phase == Phase::Killing {
            inside.iter().for_each(Thread::interrupt);
            locked(&self.state).interrupts = false;
            self.interrupted.notify_all();
        }
        self.end_if_over();
    }

    fn kind(&self) -> &'static str {
        "each"
    }

    fn load(&self) -> Load {
        let state = locked(&self.state);
        Load {
            begun: state.begun,
            waiting: 0,
            senders: state.line.len(),
        }
    }
}

impl<M, R, F> Receive<M, R> for Each<F>
where
    M: Send + 'static,
    R: Send + 'static,
    F: Fn(M) -> R + Send + Sync + 'static,
{
    fn pass(&self, passed: Passed<M, R>, patience: Patience) -> Result<(), SendError<M>> {
        match self.enter(patience) {
            Ok(true) => {
                let each = self.this.upgrade().expect("the caller has it");
                let job = Arc::new(Mutex::new(Some(passed)));
                let body = move || {
                    let job = locked(&job).take();
                    each.run(job.expect("one thread is started for it"));
                };
                self.threads.clone().start_surely(body, RETRY.0);
                Ok(())
            }
            Ok(false) => Ok(()),
            Err(refusal) => Err(passed.refused(refusal, self.identity())),
        }
    }

    fn request(&self, message: M, limit: Limit) -> Result<Reply<R>, SendError<M>> {
        let (to, reply) = reply::pair(None);
        let passed = Passed::asked(message, to, None, limit);
        self.pass(passed, Patience::Until(limit))?;
        Ok(reply)
    }
}
