//! Transactions: changes of a state that are made in full or not at all.

use super::reference::Ref;
use crate::error::{AskError, Failure, discard};
use pirn::thread::Panic;

impl<S: Clone + Send + 'static> Ref<S> {
    /// Runs code in the actor, between two messages. If the code returns an error or panics, the
    /// state is put back as it was before.
    ///
    /// The state is cloned in the actor before the code runs. The actor outlives a panic of the
    /// code, since its state is whole. If the asker gives up after the code has begun, its changes
    /// still hold. Use [`run`](Ref::run) for code that needs no way back.
    ///
    /// # Errors
    /// As for [`run`](Ref::run), and [`AskError::Failed`] if the code panics. The inner result is
    /// the code's own.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor as actor;
    /// use std::collections::HashMap;
    ///
    /// let accounts = actor::spawn(HashMap::from([("shop", 10), ("bank", 5)]));
    /// let pay = |amount| {
    ///     accounts.transaction(move |accounts| {
    ///         *accounts.get_mut("bank").unwrap() += amount;
    ///         let shop = accounts.get_mut("shop").unwrap();
    ///         *shop -= amount;
    ///         if *shop < 0 { Err("not enough") } else { Ok(*shop) }
    ///     })
    /// };
    /// assert_eq!(pay(7), Ok(Ok(3)));
    /// assert_eq!(pay(7), Ok(Err("not enough")));
    /// assert_eq!(accounts.run(|accounts| accounts["bank"]), Ok(12));
    /// ```
    pub fn transaction<T, E, F>(&self, code: F) -> Result<Result<T, E>, AskError>
    where
        F: FnOnce(&mut S) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        self.run(|state| transact(state, code))?
            .map_err(AskError::Failed)
    }
}

/// Returns the failure of code that has panicked.
fn transact<S: Clone, T, E>(
    state: &mut S,
    code: impl FnOnce(&mut S) -> Result<T, E>,
) -> Result<Result<T, E>, Failure> {
    let failure = |panic| Failure::from(&panic);
    let before = Panic::catch(|| state.clone()).map_err(failure)?;
    let outcome = Panic::catch(|| code(state)).map_err(failure);
    if !matches!(outcome, Ok(Ok(_))) {
        // The half-changed state may panic when it is dropped. The one that is kept is whole.
        discard(core::mem::replace(state, before));
    }
    outcome
}
