//! What a registry knows of an actor: by which types it is found, and when it ends. It keeps none
//! open.

use crate::actor::Mortal as _;
use crate::actor::{Address, Cell, Ending, Handle, Recipient, Ref, Target, WeakAddress, WeakRef};
use crate::process::Process;
use core::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// The ways in which an actor is found: a [`WeakRef`], [`WeakAddress`]es, [`Target`]s, each by its
/// type.
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

/// Something that ends.
pub trait Ends: Send + Sync {
    /// Calls `f`, unless it is gone.
    fn with_ending(&self, f: &mut dyn FnMut(&Ending));
}

impl<S: Send> Ends for Weak<Cell<S>> {
    fn with_ending(&self, f: &mut dyn FnMut(&Ending)) {
        if let Some(cell) = self.upgrade() {
            f(cell.ending());
        }
    }
}

/// An actor, to be registered.
pub struct Actor {
    pub(super) faces: Faces,
    pub(super) mortal: Arc<dyn Ends>,
}

impl Actor {
    pub(super) fn has_ended(&self) -> bool {
        let mut has_ended = true;
        self.mortal
            .with_ending(&mut |ending| has_ended = ending.exit().is_some());
        has_ended
    }

    /// Has a function called when it ends: at once, if it has. Returns a number for `unwatch`.
    pub(super) fn watch(mortal: &dyn Ends, f: impl FnOnce() + Send + 'static) -> u64 {
        let mut f = Some(f);
        let mut number = 0;
        mortal.with_ending(&mut |ending| {
            if let Some(f) = f.take() {
                number = ending.watch(Box::new(move |_| f()));
            }
        });
        if let Some(f) = f {
            f();
        }
        number
    }
}

/// What can be registered: a [`Ref`], an [`Address`], a [`Process`], a [`Named`].
pub trait Nameable: sealed::Sealed {
    #[doc(hidden)]
    fn actor(self) -> Actor;
}

mod sealed {
    pub trait Sealed {}
}

impl<S: Send + 'static> sealed::Sealed for &Ref<S> {}
impl<S: Send + 'static> Nameable for &Ref<S> {
    fn actor(self) -> Actor {
        let mut faces = Faces::default();
        faces.add::<WeakRef<S>>(self.downgrade());
        Actor {
            faces,
            mortal: Arc::new(Arc::downgrade(self.cell())),
        }
    }
}

impl<M: Send + 'static, R: 'static> sealed::Sealed for &Address<M, R> {}
impl<M: Send + 'static, R: 'static> Nameable for &Address<M, R> {
    fn actor(self) -> Actor {
        let mut faces = Faces::default();
        faces.add_address(self);
        Actor {
            faces,
            mortal: Arc::new(self.downgrade()),
        }
    }
}

impl<M: Send + 'static, T> sealed::Sealed for &Process<M, T> {}
impl<M: Send + 'static, T> Nameable for &Process<M, T> {
    fn actor(self) -> Actor {
        let mut faces = Faces::default();
        faces.add::<Target<M>>(self.target());
        Actor {
            faces,
            mortal: self.mortal(),
        }
    }
}

/// An actor that is to be registered, with the types of messages by which it is found, too.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Address, Context, Handle, Named, Ref, Registry};
///
/// struct Account(i64);
/// struct Deposit(i64);
/// impl Handle<Deposit> for Account {
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
    /// Begins with what is found by the type of its state.
    pub fn new(actor: &Ref<S>) -> Named<S> {
        Named {
            actor: actor.clone(),
            faces: actor.actor().faces,
        }
    }

    /// Has it found by this type of message, too.
    pub fn accepts<M: Send + 'static>(mut self) -> Named<S>
    where
        S: Handle<M, Reply: 'static>,
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

impl<S: Send + 'static> sealed::Sealed for Named<S> {}
impl<S: Send + 'static> Nameable for Named<S> {
    fn actor(self) -> Actor {
        Actor {
            faces: self.faces,
            mortal: (&self.actor).actor().mortal,
        }
    }
}
