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

mod early;
mod error;
mod named;
mod table;

pub use early::Undelivered;
pub use error::{LookupError, Taken};
pub use named::{Nameable, Named};

use crate::actor::{Address, Builder, Ref, Target, Tell, WeakAddress, WeakRef};
use crate::ending::Watching;
use crate::error::{Refusal, SendError};
use crate::poison::locked;
use core::any::Any;
use core::fmt;
use core::time::Duration;
use early::Kept;
use pirn::thread::Panic;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex};
use table::{Entry, Holder, Shared, State, later_in};

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
#[derive(Clone)]
pub struct Registry(Arc<Shared>);

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

impl Default for Registry {
    fn default() -> Registry {
        Registry::new()
    }
}

impl Registry {
    /// Makes an empty registry.
    pub fn new() -> Registry {
        Registry(Arc::new(Shared(Mutex::new(State::default()))))
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
        let before = locked(&self.0.0).undelivered.replace(actor);
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
        let mut state = locked(&self.0.0);
        let kept = match state.names.remove(&name) {
            Some(Entry::Registered(holder)) if !holder.actor.has_ended() => {
                state
                    .names
                    .insert(Arc::clone(&name), Entry::Registered(holder));
                return Err(Taken { name });
            }
            Some(Entry::Expected(kept)) => kept,
            Some(Entry::Registered(_)) | None => VecDeque::new(),
        };
        let mut left = Vec::new();
        for Kept { timer, message, .. } in kept {
            timer.cancel();
            left.extend(message.deliver(&actor.faces).err());
        }
        let number = state.next_number();
        let holder = Holder {
            number,
            actor,
            watching: None,
        };
        let name_of_entry = Arc::clone(&name);
        state.names.insert(name_of_entry, Entry::Registered(holder));
        let lost = state.hand_out(&name, left);
        drop(state);
        drop(lost);
        self.watch(name, number);
        Ok(())
    }

    /// Frees the name when its actor ends. That may be at once, so not under the lock.
    fn watch(&self, name: Arc<str>, number: u64) {
        let actor = match locked(&self.0.0).holder(&name, number) {
            Some(holder) => holder.actor.actor.upgrade(),
            None => return,
        };
        let Some(actor) = actor else {
            return self.0.ended(&name, number);
        };
        let (registry, ended) = (Arc::downgrade(&self.0), Arc::clone(&name));
        let watcher = move |_: &_| {
            if let Some(registry) = registry.upgrade() {
                registry.ended(&ended, number);
            }
        };
        let watching = Watching::begin(&actor, Box::new(watcher));
        let mut state = locked(&self.0.0);
        match state.holder(&name, number) {
            Some(holder) => holder.watching = Some(watching),
            None => {
                // The name was unregistered meanwhile, or its actor has ended.
                drop(state);
                drop(watching);
            }
        }
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
        let holder = {
            let mut state = locked(&self.0.0);
            match state.names.get(name) {
                Some(Entry::Registered(_)) => state.names.remove(name),
                _ => None,
            }
        };
        let Some(Entry::Registered(holder)) = holder else {
            return false;
        };
        !holder.actor.has_ended()
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
        let state = locked(&self.0.0);
        let unknown = || LookupError::Unknown(name.into());
        match state.names.get(name) {
            Some(Entry::Registered(holder)) if !holder.actor.has_ended() => {
                let face = holder.actor.faces.get::<F>();
                let face = face.ok_or_else(|| LookupError::WrongType(name.into()))?;
                upgrade(face).ok_or_else(unknown)
            }
            _ => Err(unknown()),
        }
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
        let mut state = locked(&self.0.0);
        let error = |message, refusal| Err(SendError::new(message, name, refusal));
        let kept = match state.names.get(name) {
            None => 0,
            Some(Entry::Expected(kept)) => kept.len(),
            Some(Entry::Registered(holder)) => {
                if holder.actor.has_ended() {
                    return error(message, Refusal::Closed);
                }
                let Some(target) = holder.actor.faces.get::<Target<M>>().cloned() else {
                    return error(message, Refusal::WrongType);
                };
                drop(state);
                return target.send(message);
            }
        };
        if kept >= most {
            return error(message, Refusal::Full);
        }
        self.keep(&mut state, name.into(), Box::new(message), limit);
        Ok(())
    }

    /// Keeps a message for a name that is free or expected.
    fn keep(
        &self,
        state: &mut State,
        name: Arc<str>,
        message: Box<dyn early::Early>,
        limit: Duration,
    ) {
        let number = state.next_number();
        let (registry, expected) = (Arc::downgrade(&self.0), Arc::clone(&name));
        let timer = later_in(registry, limit, move |shared| {
            shared.expire(&expected, number);
        });
        let entry = state
            .names
            .entry(name)
            .or_insert_with(|| Entry::Expected(VecDeque::new()));
        let Entry::Expected(kept) = entry else {
            unreachable!("the name is free, or expected")
        };
        kept.push_back(Kept {
            number,
            timer,
            message,
        });
    }

    /// Returns the names of all registered actors, sorted, for logs and dumps.
    pub fn names(&self) -> Vec<Arc<str>> {
        let state = locked(&self.0.0);
        let is_named = |entry: &Entry| match entry {
            Entry::Registered(holder) => !holder.actor.has_ended(),
            Entry::Expected(_) => false,
        };
        let named = state.names.iter().filter(|(_, entry)| is_named(entry));
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
