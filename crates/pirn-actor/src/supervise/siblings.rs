//! What a child may know of the children before it, and children that are found by what they are
//! sent.

use super::error::NoChild;
use super::node::Leaf;
use super::supervisor::Supervisor;
use super::table::{Table, What};
use super::tree::{Find, find, find_address};
use crate::actor::{Address, Builder, Function, Ref};
use crate::poison::locked;
use crate::process::Process;
use core::fmt;
use std::sync::{Arc, OnceLock, Weak};

/// Where a supervisor's table will be.
pub(super) type Awaited = Arc<OnceLock<Weak<Table>>>;

/// Finds the children of a supervisor that were added before a moment: for the recipes of those
/// after them. See [`Supervisor::siblings`].
#[derive(Clone)]
pub struct Siblings {
    table: Awaited,
    /// The number of children that it finds.
    count: usize,
}

impl Siblings {
    /// Returns a child, by its name, as [`Tree::get`](crate::Tree::get) does.
    ///
    /// # Errors
    /// No such child was added before, or its state has another type, or it has not begun yet.
    pub fn get<S: Send + 'static>(&self, name: &str) -> Result<Ref<S>, NoChild> {
        self.with(name, |table| find(&table.entries[..self.count], name))
    }

    /// Returns a child that is a process, by its name.
    ///
    /// # Errors
    /// As for [`get`](Siblings::get).
    pub fn get_process<M: Send + 'static>(&self, name: &str) -> Result<Process<M>, NoChild> {
        self.with(name, |table| find(&table.entries[..self.count], name))
    }

    /// Returns the address of a child that is a [function](Supervisor::function), by its name.
    ///
    /// # Errors
    /// As for [`get`](Siblings::get).
    pub fn address<M: 'static, R: 'static>(&self, name: &str) -> Result<Address<M, R>, NoChild> {
        self.with(name, |table| {
            find_address(&table.entries[..self.count], name)
        })
    }

    fn with<T>(
        &self,
        name: &str,
        f: impl FnOnce(&Table) -> Result<T, NoChild>,
    ) -> Result<T, NoChild> {
        let table = self.table.get().and_then(Weak::upgrade);
        let table = table.ok_or_else(|| NoChild::unknown(name))?;
        f(&table)
    }
}

impl fmt::Debug for Siblings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table.get().and_then(Weak::upgrade);
        let entries = table.iter().flat_map(|table| &table.entries[..self.count]);
        f.debug_list()
            .entries(entries.map(|entry| &entry.name))
            .finish()
    }
}

impl Supervisor {
    /// Returns what finds the children that have been added so far, once the supervisor is started.
    ///
    /// It is for the recipes and functions of the children that are added after them: those begin
    /// when the ones before are ready. A reference that is found stays good when its child is
    /// restarted.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Context, Handle, Ref, Supervisor};
    ///
    /// struct Report {
    ///     rows: Ref<Vec<u64>>,
    /// }
    /// impl Handle<()> for Report {
    ///     type Reply = usize;
    ///     fn handle(&mut self, (): (), _: &Context<Self>) -> usize {
    ///         self.rows.run(|rows| rows.len()).unwrap()
    ///     }
    /// }
    /// let app = Supervisor::rest_for_one().child("rows", || vec![1_u64, 2, 3]);
    /// let before = app.siblings();
    /// let app = app
    ///     .try_child("report", move || before.get("rows").map(|rows| Report { rows }))
    ///     .start()
    ///     .unwrap();
    /// assert_eq!(app.get::<Report>("report").unwrap().ask(()), Ok(3));
    /// ```
    pub fn siblings(&self) -> Siblings {
        Siblings {
            table: Arc::clone(&self.table),
            count: self.entries.len(),
        }
    }

    /// Adds an actor that calls a closure for each message. The recipe makes the closure, at first
    /// and again at each restart. [`Tree::address`](crate::Tree::address) finds it.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Address, Supervisor};
    ///
    /// let app = Supervisor::one_for_one()
    ///     .function("sum", || {
    ///         let mut sum = 0;
    ///         move |n: u32| {
    ///             sum += n;
    ///             sum
    ///         }
    ///     })
    ///     .start()
    ///     .unwrap();
    /// let sum: Address<u32, u32> = app.address("sum").unwrap();
    /// assert_eq!((sum.ask(2), sum.ask(3)), (Ok(2), Ok(5)));
    /// ```
    pub fn function<M, R, F>(
        self,
        name: impl Into<Arc<str>>,
        recipe: impl FnMut() -> F + Send + 'static,
    ) -> Supervisor
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnMut(M) -> R + Send + 'static,
    {
        self.function_with(name, Builder::new(), recipe)
    }

    /// Adds an actor that this builder makes, and that calls a closure for each message.
    pub fn function_with<M, R, F>(
        self,
        name: impl Into<Arc<str>>,
        builder: Builder,
        mut recipe: impl FnMut() -> F + Send + 'static,
    ) -> Supervisor
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnMut(M) -> R + Send + 'static,
    {
        let leaf = Leaf::new(builder, move || Ok(Function::new(recipe())));
        let slot = leaf.slot();
        let find: Find<M, R> = Box::new(move || locked(&slot).as_ref().map(Ref::address));
        let what = What::Actor(Box::new(find));
        self.add(name.into(), "function", what, Box::new(leaf))
    }
}
