//! Names: one actor per name, found by its name and a type.
//!
//! ```text
//!          send_early              register
//!   free ------------> expected ------------> registered ---> free
//!    ^  \               |    ^  the messages,     ^       its actor ends, or unregister
//!    |   \ none is left |    |  first of all      |
//!    |<---\-------------+    +- send_early        |
//!          \--------------- register -------------+
//! ```
//!
//! One lock guards everything. Under it the registry calls no function of the program: it puts
//! messages into mailboxes, and hands those that no actor has got to the actor that calls
//! `on_undelivered`.
//!
//! The name of an actor that has ended is free. Its entry stays until the name is given again, or
//! until there are twice as many entries as names in use.

mod early;
mod named;

pub use early::Undelivered;
pub use named::{Nameable, Named};

use crate::actor::{Address, Builder, Ref, Target, Tell, WeakAddress, WeakRef};
use crate::error::{LookupError, Refusal, SendError};
use crate::life::Actor;
use crate::poison::locked;
use core::any::Any;
use core::fmt;
use core::time::Duration;
use early::Early;
use named::{Entrant, Faces};
use pirn::thread::Panic;
use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, LazyLock, Mutex};

/// A table of actors by name. [`global`] is one for the whole program.
///
/// Clones share one table. The table does not keep actors open.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Address};
/// use pirn_actor::registry::Registry;
///
/// let registry = Registry::new();
/// let square = actor::function(|n: u64| n * n);
/// registry.register("square", &square)?;
///
/// let found: Address<u64, u64> = registry.address("square")?;
/// assert_eq!(found.ask(7), Ok(49));
/// assert!(registry.register("square", &square).is_err());
/// assert!(registry.address::<u64, u64>("cube").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Registry(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    actors: HashMap<Arc<str>, Entrant>,
    /// At this number of entries, the ones of ended actors are taken out.
    many: usize,
    early: Early,
}

impl State {
    /// Returns the actor with this name, and the values by which it is found.
    fn actor(&self, name: &str) -> Option<(Arc<dyn Actor>, &Faces)> {
        let entrant = self.actors.get(name)?;
        Some((entrant.actor()?, &entrant.faces))
    }

    fn insert(&mut self, name: Arc<str>, actor: Entrant) {
        if self.actors.len() >= self.many.max(64) {
            self.actors.retain(|_, entrant| entrant.actor().is_some());
            self.many = self.actors.len() * 2;
        }
        self.actors.insert(name, actor);
    }
}

/// Returns the registry of the whole program.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
///
/// let log = actor::consumer(|line: String| println!("{line}"));
/// actor::registry::global().register("log", &log)?;
/// actor::registry::global().send("log", "hello".to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn global() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::new);
    &REGISTRY
}

impl Registry {
    /// Makes an empty registry.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Sets a function that gets each message that was kept for a name and that no actor has got.
    /// An actor of its own calls it. Without a function, such messages are dropped.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::error::Refusal;
    /// use pirn_actor::registry::Registry;
    /// use std::time::Duration;
    ///
    /// let registry = Registry::new();
    /// let (tell, told) = std::sync::mpsc::channel();
    /// registry.on_undelivered(move |undelivered| tell.send(undelivered).unwrap());
    /// registry.send_early("nobody", 7, 10, Duration::from_millis(1))?;
    /// let undelivered = told.recv()?;
    /// assert_eq!((&*undelivered.name, undelivered.why), ("nobody", Refusal::TimedOut));
    /// assert_eq!(undelivered.message.downcast_ref(), Some(&7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_undelivered(&self, f: impl Fn(Undelivered) + Send + 'static) {
        let builder = Builder::new().name("undelivered").unbounded();
        let actor = builder.consumer(move |undelivered| {
            // The panic hook has reported a panic of `f`, which does not end this actor.
            let _ = Panic::catch(|| f(undelivered));
        });
        let before = locked(&self.0).early.undelivered.replace(actor);
        drop(before);
    }

    /// Gives an actor a name. The actor is a [`Ref`], an [`Address`], a
    /// [`Process`](crate::process::Process), or a [`Named`], which is found by several types. The
    /// messages that were kept for the name come before all others in its mailbox, whatever its
    /// capacity.
    ///
    /// # Errors
    /// Another actor has the name, and has not ended.
    pub fn register(&self, name: impl Into<Arc<str>>, actor: impl Nameable) -> Result<(), Taken> {
        let (name, actor) = (name.into(), actor.entrant());
        let mut state = locked(&self.0);
        if state.actor(&name).is_some() {
            return Err(Taken { name });
        }
        let lost = state.early.deliver(&name, &actor.faces);
        state.insert(name, actor);
        drop(state);
        drop(lost);
        Ok(())
    }

    /// Frees a name. Returns true if an actor had it.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor as actor;
    /// use pirn_actor::registry::Registry;
    ///
    /// let registry = Registry::new();
    /// let one = actor::consumer(|_: u32| ());
    /// registry.register("name", &one).unwrap();
    /// assert!(registry.unregister("name"));
    /// assert!(!registry.unregister("name"));
    /// registry.register("another name", &one).unwrap();
    /// assert_eq!(registry.names(), ["another name".into()]);
    /// ```
    pub fn unregister(&self, name: &str) -> bool {
        let entrant = locked(&self.0).actors.remove(name);
        entrant.is_some_and(|entrant| entrant.actor().is_some())
    }

    /// Returns the actor with this name, if its state is an `S`.
    ///
    /// # Errors
    /// No actor has the name, or its state has another type.
    pub fn get<S: Send + 'static>(&self, name: &str) -> Result<Ref<S>, LookupError> {
        self.find(name, |actor: &WeakRef<S>| actor.upgrade())
    }

    /// Returns the address of the actor with this name, if the actor was registered by an address
    /// for messages and answers of these types, or [accepts](Named::accepts) them.
    ///
    /// # Errors
    /// No actor has the name, or the actor was not registered for these types.
    pub fn address<M, R>(&self, name: &str) -> Result<Address<M, R>, LookupError>
    where
        M: Send + 'static,
        R: 'static,
    {
        self.find(name, |actor: &WeakAddress<M, R>| actor.upgrade())
    }

    /// Returns a target for messages of this type to the actor, or process, with this name. It does
    /// not keep the actor open.
    ///
    /// # Errors
    /// No actor has the name, or the actor accepts no messages of this type.
    pub fn target<M: Send + 'static>(&self, name: &str) -> Result<Target<M>, LookupError> {
        self.find(name, |target: &Target<M>| Some(target.clone()))
    }

    fn find<F: Any, T>(
        &self,
        name: &str,
        upgrade: impl FnOnce(&F) -> Option<T>,
    ) -> Result<T, LookupError> {
        let state = locked(&self.0);
        let unknown = || LookupError::Unknown { name: name.into() };
        let (actor, faces) = state.actor(name).ok_or_else(unknown)?;
        let face = faces.get::<F>().ok_or_else(|| LookupError::WrongType {
            name: name.into(),
            kind: actor.kind(),
        })?;
        upgrade(face).ok_or_else(unknown)
    }

    /// Sends a message to the actor with this name, as [`Tell::send`] does.
    ///
    /// # Errors
    /// The message comes back: no actor has the name ([`Refusal::Unknown`]), its actor accepts no
    /// such messages ([`Refusal::WrongType`]), or as from [`Ref::send`].
    pub fn send<M: Send + 'static>(&self, name: &str, message: M) -> Result<(), SendError<M>> {
        match self.target(name) {
            Ok(target) => target.send(message),
            Err(error) => Err(SendError::new(message, name, error.into())),
        }
    }

    /// Sends a message to the actor with this name. If no actor has the name yet, the registry
    /// keeps the message until one has, for as long as `limit`. It keeps up to `most` messages for
    /// the name.
    ///
    /// Messages that no actor has got go to [`on_undelivered`](Registry::on_undelivered).
    ///
    /// # Errors
    /// The message comes back: too many are kept ([`Refusal::Full`]), or as from
    /// [`send`](Registry::send).
    ///
    /// # Examples
    /// ```
    /// use pirn_actor as actor;
    /// use pirn_actor::registry::Registry;
    /// use std::time::Duration;
    ///
    /// let registry = Registry::new();
    /// let minute = Duration::from_secs(60);
    /// registry.send_early("log", "one", 2, minute)?;
    /// registry.send_early("log", "two", 2, minute)?;
    /// assert!(registry.send_early("log", "three", 2, minute).unwrap_err().is_full());
    ///
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let log = actor::consumer(move |line: &str| tell.send(line).unwrap());
    /// registry.register("log", &log)?;
    /// registry.send_early("log", "four", 2, minute)?;
    /// assert!(told.iter().take(3).eq(["one", "two", "four"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn send_early<M: Send + 'static>(
        &self,
        name: &str,
        message: M,
        most: usize,
        limit: Duration,
    ) -> Result<(), SendError<M>> {
        let mut state = locked(&self.0);
        if state.actor(name).is_some() {
            drop(state);
            return self.send(name, message);
        }
        if state.early.count(name) >= most {
            return Err(SendError::new(message, name, Refusal::Full));
        }
        let registry = Arc::downgrade(&self.0);
        let expire = move |name: &Arc<str>, number| {
            if let Some(registry) = registry.upgrade() {
                let lost = locked(&registry).early.expire(name, number);
                drop(lost);
            }
        };
        state
            .early
            .keep(name.into(), Box::new(message), limit, expire);
        Ok(())
    }

    /// Returns the names of all registered actors, sorted, for logs and dumps.
    pub fn names(&self) -> Vec<Arc<str>> {
        let state = locked(&self.0);
        let entries = state.actors.iter();
        let named = entries.filter(|(_, entrant)| entrant.actor().is_some());
        let mut names: Vec<_> = named.map(|(name, _)| Arc::clone(name)).collect();
        names.sort();
        names
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.names()).finish()
    }
}

/// Another actor has the name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken {
    /// The name.
    pub name: Arc<str>,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "another actor has the name {:?}", self.name)
    }
}

impl Error for Taken {}
