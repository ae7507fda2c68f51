//! A registry's entry of an actor: the types by which it is found. The entry does not keep the
//! actor open.

use crate::actor::{Address, Handler, Recipient, Ref, Target, WeakAddress, WeakRef};
use crate::life::Actor;
use crate::process::Process;
use core::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// The values by which an actor is found, each by its type: a [`WeakRef`], [`WeakAddress`]es,
/// [`Target`]s.
#[derive(Default)]
pub struct Faces(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Faces {
    pub(super) fn add<F: Any + Send + Sync>(&mut self, face: F) {
        self.0.insert(TypeId::of::<F>(), Box::new(face));
    }

    pub(super) fn get<F: Any>(&self) -> Option<&F> {
        self.0.get(&TypeId::of::<F>())?.downcast_ref()
    }

    fn add_address<M: Send + 'static, R: 'static>(&mut self, address: &Address<M, R>) {
        self.add::<WeakAddress<M, R>>(address.downgrade());
        self.add::<Target<M>>(address.target());
    }
}

/// A registry's entry of an actor.
pub struct Entrant {
    pub(super) faces: Faces,
    actor: Weak<dyn Actor>,
}

impl Entrant {
    fn new(actor: &(dyn Actor + 'static), faces: Faces) -> Entrant {
        Entrant {
            faces,
            actor: Arc::downgrade(&actor.this()),
        }
    }

    /// Returns the actor, unless it has ended.
    pub(super) fn actor(&self) -> Option<Arc<dyn Actor>> {
        self.actor.upgrade().filter(|actor| actor.exit().is_none())
    }
}

/// An actor that can be registered: a [`Ref`], an [`Address`], a [`Process`], a [`Named`].
pub trait Nameable {
    #[doc(hidden)]
    fn entrant(self) -> Entrant;
}

impl<S: Send + 'static> Nameable for &Ref<S> {
    fn entrant(self) -> Entrant {
        let mut faces = Faces::default();
        faces.add::<WeakRef<S>>(self.downgrade());
        Entrant::new(&**self, faces)
    }
}

impl<M: Send + 'static, R: 'static> Nameable for &Address<M, R> {
    fn entrant(self) -> Entrant {
        let mut faces = Faces::default();
        faces.add_address(self);
        Entrant::new(&**self, faces)
    }
}

impl<M: Send + 'static, T> Nameable for &Process<M, T> {
    fn entrant(self) -> Entrant {
        let mut faces = Faces::default();
        faces.add::<Target<M>>(self.target());
        Entrant::new(&**self, faces)
    }
}

/// An actor to be registered, with the types of messages by which it is also found.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Address, Context, Handler, Ref};
/// use pirn_actor::registry::{Named, Registry};
///
/// struct Account(i64);
/// struct Deposit(i64);
/// impl Handler<Deposit> for Account {
///     type Reply = i64;
///     fn handle(&mut self, Deposit(amount): Deposit, _: &Context<Self>) -> i64 {
///         self.0 += amount;
///         self.0
///     }
/// }
/// let registry = Registry::new();
/// let account = actor::spawn(Account(10));
/// registry.register("account.7", Named::new(&account).accepts::<Deposit>())?;
///
/// let payee: Address<Deposit, i64> = registry.address("account.7")?;
/// assert_eq!(payee.ask(Deposit(5)), Ok(15));
/// let whole: Ref<Account> = registry.get("account.7")?;
/// assert_eq!(whole.run(|account| account.0), Ok(15));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Named<S: Send + 'static> {
    actor: Ref<S>,
    faces: Faces,
}

impl<S: Send + 'static> Named<S> {
    /// Begins with the type of the actor's state.
    pub fn new(actor: &Ref<S>) -> Named<S> {
        Named {
            actor: actor.clone(),
            faces: actor.entrant().faces,
        }
    }

    /// Makes the actor found by this type of message, too.
    pub fn accepts<M: Send + 'static>(mut self) -> Named<S>
    where
        S: Handler<M, Reply: 'static>,
    {
        self.faces.add_address(&self.actor.address::<M>());
        self
    }
}

impl<S: Send + 'static> core::fmt::Debug for Named<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Named").field(&self.actor).finish()
    }
}

impl<S: Send + 'static> Nameable for Named<S> {
    fn entrant(self) -> Entrant {
        Entrant::new(&*self.actor, self.faces)
    }
}
