//! An actor with handlers: its life, mailbox and state.

use super::handler::Context;
use super::overtime::Overtime;
use super::recipe::{Recipe, Restarts};
use super::runner;
use crate::edges::To;
use crate::envelope::Envelope;
use crate::error::{Failure, short_name};
use crate::identity::Identity;
use crate::life::{Actor, Life, Load};
use crate::mailbox::{Mailbox, Overflow, Phase, Then};
use crate::supervisor::Reporter;
use crate::time::timers;
use core::time::Duration;
use pirn::thread::{self, Panic};
use std::io;
use std::sync::{Arc, Mutex};

/// An item in the mailbox of an actor with the state `S`.
pub(crate) type Item<S> = Envelope<S, Context<S>>;

pub(crate) struct ActorCell<S> {
    pub(crate) life: Life,
    pub(crate) mailbox: Mailbox<Item<S>>,
    /// The state. Only the runner locks it, for as long as it runs.
    pub(super) body: Mutex<Body<S>>,
    pub(crate) options: Options,
}

/// The state and its recipe, for the runner.
pub(crate) struct Body<S> {
    pub(crate) state: Option<S>,
    pub(crate) recipe: Recipe<S>,
}

/// The options of a builder, in one word: there may be a million actors.
pub(crate) type Options = Option<Arc<Rare>>;

/// Called with the name of a message's type.
pub(crate) type OnUndelivered = Arc<dyn Fn(&str) + Send + Sync>;

/// Returns the function that is called for messages that are not delivered.
pub(crate) fn on_undelivered(options: &Options) -> Option<&OnUndelivered> {
    options.as_deref()?.on_undelivered.as_ref()
}

/// Calls this function, if there is one, for a message of the type `name`. A panic ends only the
/// function: the panic hook has reported it, and the caller goes on with the other messages.
pub(crate) fn tell_undelivered(function: Option<&OnUndelivered>, name: &str) {
    if let Some(function) = function {
        let _ = Panic::catch(|| function(name));
    }
}

/// Options that few builders set.
#[derive(Clone, Default)]
pub(crate) struct Rare {
    pub(crate) threads: Threads,
    /// Called with the names of messages that were never begun.
    pub(crate) on_undelivered: Option<OnUndelivered>,
    pub(crate) supervisor: Option<Reporter>,
    /// How long a message may take.
    pub(crate) overtime: Option<Arc<Overtime>>,
    /// The least time between the starts of two messages.
    pub(crate) least_between: Option<Duration>,
    /// How often the actor restarts without its supervisor.
    pub(crate) restarts: Option<Restarts>,
}

/// The pauses between attempts to start a thread for an actor: the first and the longest.
pub(crate) const RETRY: (Duration, Duration) =
    (Duration::from_millis(1), Duration::from_millis(100));

/// Where the threads of an actor come from.
#[derive(Clone, Default)]
pub(crate) enum Threads {
    /// Virtual threads, as `thread::spawn` makes them.
    #[default]
    Virtual,
    /// Virtual threads of this builder: with names, stack sizes, a scheduler.
    Made(Arc<thread::Builder>),
    /// Platform threads.
    Platform,
}

impl Threads {
    pub(crate) fn of(options: &Options) -> Threads {
        let rare = options.as_deref();
        rare.map_or_else(Threads::default, |rare| rare.threads.clone())
    }

    /// Starts a thread.
    #[inline]
    pub(crate) fn start(&self, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        match self {
            Threads::Virtual => thread::Builder::new().spawn(body).map(drop),
            Threads::Made(builder) => thread::Builder::clone(builder).spawn(body).map(drop),
            Threads::Platform => std::thread::Builder::new().spawn(body).map(drop),
        }
    }

    /// Starts a thread. If that fails, a timer tries again after `retry`, and so on.
    pub(crate) fn start_surely(
        self,
        body: impl FnOnce() + Clone + Send + 'static,
        retry: Duration,
    ) {
        if self.start(body.clone()).is_err() {
            let later = move || self.start_surely(body, (retry * 2).min(RETRY.1));
            timers::after(retry, later);
        }
    }
}

/// A change that an actor reports to its supervisor. The supervisor learns of the end as all
/// watchers do.
#[derive(Debug)]
pub(crate) enum Change {
    /// The recipe has made a state.
    Ready,
    /// The state is dropped, and the mailbox is held: after this failure, or because the supervisor
    /// holds the actor.
    Held(Option<Failure>),
}

impl<S: Send> ActorCell<S> {
    /// Makes an actor with one reference, which the caller releases.
    ///
    /// # Safety
    /// The state and the messages may only borrow what outlives the publication of the actor's end.
    pub(crate) unsafe fn borrowing(
        identity: Identity,
        (capacity, overflow): (usize, Overflow),
        (state, recipe): (Option<S>, Recipe<S>),
        options: Options,
    ) -> Arc<ActorCell<S>> {
        let cell = Arc::new(ActorCell {
            life: Life::new(identity),
            mailbox: Mailbox::new(capacity, overflow),
            body: Mutex::new(Body { state, recipe }),
            options,
        });
        Arc::as_ptr(&cell).expose_provenance(); // for `arc`
        cell
    }

    /// Returns the `Arc` around this. A `Weak` in each actor would be another word, and there may
    /// be a million.
    fn arc(&self) -> Arc<ActorCell<S>> {
        let address = core::ptr::from_ref(self).addr();
        let cell = core::ptr::with_exposed_provenance::<ActorCell<S>>(address);
        // SAFETY: `borrowing` is the only constructor; it puts each cell into an `Arc` and exposes
        // the provenance of its pointer. The caller has, or has borrowed, such an `Arc`, so the
        // count is at least 1.
        unsafe {
            Arc::increment_strong_count(cell);
            Arc::from_raw(cell)
        }
    }

    /// Acts on the result of a change of the mailbox: starts a runner if there is to be one.
    pub(crate) fn then(&self, then: Then) {
        if then == Then::Start {
            runner::start(self.arc());
        }
    }

    /// Returns the target of a wait for this actor.
    pub(crate) fn to(&self) -> To {
        To::Actor(self.life.identity.clone())
    }
}

impl<S: Send> Actor for ActorCell<S> {
    fn life(&self) -> &Life {
        &self.life
    }

    fn this(&self) -> Arc<dyn Actor>
    where
        Self: 'static,
    {
        self.arc()
    }

    fn end(&self, phase: Phase) {
        let is_closed = phase == Phase::Closing && self.mailbox.is_stopping();
        if is_closed || runner::end_idle(self, phase) {
            return;
        }
        self.then(self.mailbox.end(phase, &self.life.identity));
    }

    fn kind(&self) -> &'static str {
        short_name::<S>()
    }

    fn load(&self) -> Load {
        self.mailbox.load()
    }

    fn hold(&self) {
        self.then(self.mailbox.hold(&self.life.identity));
    }

    fn go_on(&self) {
        self.then(self.mailbox.release());
    }

    fn about_to_wait(&self) {
        self.mailbox.let_in();
    }
}
