//! The handle of a running supervisor.

use super::node::Slot;
use super::table::{ChildInfo, Entry, Table, What};
use crate::error::LookupError;
use crate::life::Actor;
use crate::poison::locked;
use core::fmt;
use core::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

/// A running supervisor with its children.
///
/// Dropping it stops the tree, as `stop` does, and does not wait. To let a tree run until the
/// program ends, keep it, or forget it by [`core::mem::forget`].
///
/// # Examples
/// See [`Supervisor`](crate::supervisor::Supervisor).
pub struct Tree(pub(super) Arc<Table>);

/// A close, a stop and a kill do the same to a tree: the children end in reverse order, and then
/// the supervisor. Each child is stopped. If it has not ended [in
/// time](crate::supervisor::Supervisor::grace), it is killed, and after the same time again it is
/// left alone. The exit is [`Exit::Stopped`], or [`Exit::Failed`] after more failures than the
/// supervisor allows.
///
/// [`Exit::Stopped`]: crate::Exit::Stopped
/// [`Exit::Failed`]: crate::Exit::Failed
impl Deref for Tree {
    type Target = dyn Actor;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Tree {
    /// Returns a child, by its name: a [`Ref`](crate::Ref), the
    /// [`Process`](crate::process::Process), or the [`Address`](crate::Address) of a
    /// [function](crate::supervisor::Supervisor::function), whose state has no name. The child of a
    /// nested supervisor has the name `supervisor/child`.
    ///
    /// The reference stays good when the child fails and is restarted, and messages stay in its
    /// mailbox. If other code ends the child, the supervisor may
    /// [replace](crate::supervisor::Supervisor#ends) it by another actor under the same name, which
    /// this method returns from then on.
    ///
    /// # Errors
    /// If there is no child with this name, or it has another type.
    pub fn get<R>(&self, name: &str) -> Result<R, LookupError>
    where
        R: Deref<Target = dyn Actor> + Clone + Send + 'static,
    {
        find(&self.0.entries, name)
    }

    /// Returns the children, in order, for logs and dumps. The data of different children is not
    /// from the same moment.
    pub fn children(&self) -> Vec<ChildInfo> {
        self.0.entries.iter().map(Entry::info).collect()
    }
}

/// Returns a clone of the value in a child's slot, if the slot has this type.
fn find<T>(entries: &[Entry], name: &str) -> Result<T, LookupError>
where
    T: Clone + Send + 'static,
{
    let unknown = || LookupError::Unknown { name: name.into() };
    let entry = entry(entries, name).ok_or_else(unknown)?;
    let slot: Option<&Slot<T>> = match &entry.what {
        What::Actor(slot) => slot.downcast_ref(),
        What::Tree(_) => None,
    };
    let slot = slot.ok_or_else(|| LookupError::WrongType {
        name: name.into(),
        kind: entry.kind,
    })?;
    // It is there if the child was ever ready.
    locked(slot).clone().ok_or_else(unknown)
}

fn entry<'a>(entries: &'a [Entry], name: &str) -> Option<&'a Entry> {
    let named = |name: &str| entries.iter().find(|entry| &*entry.name == name);
    if let Some(entry) = named(name) {
        return Some(entry);
    }
    // A name may contain a slash itself.
    name.match_indices('/')
        .find_map(|(at, _)| match &named(&name[..at])?.what {
            What::Tree(table) => entry(&table.entries, &name[at + 1..]),
            What::Actor(_) => None,
        })
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("name", &self.name())
            .field("children", &self.children())
            .finish_non_exhaustive()
    }
}

/// The place where a supervisor puts its table when it starts.
pub(super) type Awaited = Arc<OnceLock<Weak<Table>>>;

/// Finds the children that were added to a supervisor before a moment, for the recipes of those
/// after them. See [`Supervisor::siblings`](crate::supervisor::Supervisor::siblings).
#[derive(Clone)]
pub struct Siblings {
    pub(super) table: Awaited,
    /// The number of children that it finds.
    pub(super) count: usize,
}

impl Siblings {
    /// Returns a child, by its name, as [`Tree::get`](crate::supervisor::Tree::get) does.
    ///
    /// # Errors
    /// If no such child was added before, or it has another type, or it has not begun yet.
    pub fn get<R>(&self, name: &str) -> Result<R, LookupError>
    where
        R: Deref<Target = dyn Actor> + Clone + Send + 'static,
    {
        let table = self.table.get().and_then(Weak::upgrade);
        let table = table.ok_or_else(|| LookupError::Unknown { name: name.into() })?;
        find(&table.entries[..self.count], name)
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
