//! The handle of a supervisor that was started.

use super::error::NoChild;
use super::events::Event;
use super::table::{ChildInfo, Entry, Table, What};
use crate::actor::{Address, Ref};
use crate::error::Exit;
use crate::monitor::Monitor;
use crate::poison::locked;
use crate::process::{Process, Watch, sealed};
use crate::time::Limit;
use core::any::Any;
use core::fmt;
use core::time::Duration;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// A supervisor that was started, with its children.
///
/// When it is dropped the tree is stopped, as by [`stop`](Tree::stop), and not waited for. A tree
/// that is to run until the program ends is kept, or forgotten by [`core::mem::forget`].
///
/// # Examples
/// See [`Supervisor`](crate::Supervisor).
pub struct Tree {
    pub(super) table: Arc<Table>,
    pub(super) events: Sender<Event>,
}

impl Tree {
    /// Returns a child, by its name. That of a child of a supervisor that is a child itself is
    /// `supervisor/child`.
    ///
    /// The reference stays good when the child fails and is restarted: what is in the mailbox stays
    /// there. Only if other code has ended the child on purpose, a permanent child is replaced by
    /// another actor under the same name, which this returns from then on.
    ///
    /// # Errors
    /// There is no child with this name, or its state has another type.
    pub fn get<S: Send + 'static>(&self, name: &str) -> Result<Ref<S>, NoChild> {
        find(&self.table.entries, name)
    }

    /// Returns a child that is a process, by its name, as [`get`](Tree::get) does.
    ///
    /// # Errors
    /// There is no child with this name, or it is no process for such messages.
    pub fn get_process<M: Send + 'static>(&self, name: &str) -> Result<Process<M>, NoChild> {
        find(&self.table.entries, name)
    }

    /// Returns the address of a child that is a [function](crate::Supervisor::function), by its
    /// name: the type of its state has none.
    ///
    /// # Errors
    /// There is no child with this name, or it is no function for such messages and answers.
    pub fn address<M: 'static, R: 'static>(&self, name: &str) -> Result<Address<M, R>, NoChild> {
        find_address(&self.table.entries, name)
    }

    /// Has the children end, in reverse order, and then the supervisor. Each child is
    /// [stopped](Ref::stop); if it has not ended [in time](crate::Supervisor::grace), it is
    /// [killed](Ref::kill), and after the same time again it is left alone.
    pub fn stop(&self) {
        // A supervisor that does not hear any more has ended.
        let _ = self.events.send(Event::Stop);
    }

    /// Waits until the supervisor and its children have ended.
    pub fn join(&self) -> Exit {
        let exit = self.table.ending.join(Limit::NEVER);
        exit.expect("without a time limit it has ended")
    }

    /// Waits until the supervisor and its children have ended, for as long as `timeout`.
    pub fn join_timeout(&self, timeout: Duration) -> Option<Exit> {
        self.table.ending.join(Limit::after(timeout))
    }

    /// Returns how the supervisor has ended, if it has: [`Exit::Stopped`] after a stop, and
    /// [`Exit::Failed`] after more failures than it may mend.
    pub fn exit(&self) -> Option<Exit> {
        self.table.ending.exit()
    }

    /// Returns what tells of the supervisor's end.
    pub fn monitor(&self) -> Monitor {
        Monitor::of(Arc::clone(&self.table) as Arc<_>)
    }

    /// Calls a function when the supervisor ends, on its thread; at once and here if it has ended.
    pub fn on_exit(&self, f: impl FnOnce(&Exit) + Send + 'static) {
        self.table.ending.watch(Box::new(f));
    }

    /// Returns the supervisor's name.
    pub fn name(&self) -> Arc<str> {
        self.table.identity.name()
    }

    /// Returns the children, in order, for people. Each is seen at a moment of its own.
    pub fn children(&self) -> Vec<ChildInfo> {
        self.table.entries.iter().map(Entry::info).collect()
    }
}

/// Where a child's reference is, for those who look it up.
pub(super) type Slot<T> = Arc<Mutex<Option<T>>>;

/// Makes a slot one of a table.
pub(super) fn kept<T: Send + 'static>(slot: Slot<T>) -> What {
    let slot: Box<dyn Any + Send + Sync> = Box::new(slot);
    What::Actor(slot)
}

/// Returns the address of a function, if it has begun.
pub(super) type Find<M, R> = Box<dyn Fn() -> Option<Address<M, R>> + Send + Sync>;

/// Returns what is kept for a child in a slot of this type.
pub(super) fn find<T>(entries: &[Entry], name: &str) -> Result<T, NoChild>
where
    T: Clone + Send + 'static,
{
    let slot: &Slot<T> = kept_as(entries, name)?;
    // It is there: the child has been ready.
    locked(slot).clone().ok_or_else(|| NoChild::unknown(name))
}

/// Returns the address of a child that is a function.
pub(super) fn find_address<M: 'static, R: 'static>(
    entries: &[Entry],
    name: &str,
) -> Result<Address<M, R>, NoChild> {
    let find: &Find<M, R> = kept_as(entries, name)?;
    find().ok_or_else(|| NoChild::unknown(name))
}

/// Returns what is kept for a child, if it is of this type.
fn kept_as<'a, T: 'static>(entries: &'a [Entry], name: &str) -> Result<&'a T, NoChild> {
    let entry = entry(entries, name).ok_or_else(|| NoChild::unknown(name))?;
    let kept: Option<&T> = match &entry.what {
        What::Actor(kept) => kept.downcast_ref(),
        What::Tree(_) => None,
    };
    kept.ok_or_else(|| NoChild::other(name, entry.kind))
}

fn entry<'a>(entries: &'a [Entry], name: &str) -> Option<&'a Entry> {
    let named = |name: &str| entries.iter().find(|entry| &*entry.name == name);
    if let Some(entry) = named(name) {
        return Some(entry);
    }
    // A name may have a slash in itself.
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

impl Watch for Tree {}

impl sealed::Sealed for Tree {
    fn watched(&self) -> sealed::Watched {
        sealed::Watched(Arc::clone(&self.table) as Arc<_>)
    }
}
