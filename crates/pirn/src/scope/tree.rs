//! All open scopes and their members: what programs and dumps show.

use super::state::{Member, ScopeState};
use crate::thread::{Thread, ThreadId};
use core::fmt;
use core::num::NonZeroU64;
use core::sync::atomic::{AtomicUsize, Ordering};
use pirn_rt::blocking::list::{Linked, Links, List};
use pirn_rt::lock::Lock;
use pirn_rt::poison::PerProcess;
use std::sync::Arc;

/// All scopes, in several lists, so that carriers that open scopes do not contend.
struct Tree([TreeShard; SHARDS]);

const SHARDS: usize = 16;

#[repr(align(64))]
pub(super) struct TreeShard {
    scopes: Lock<List<ScopeState>>,
    /// The length of the list, readable without its lock.
    len: AtomicUsize,
}

static TREE: PerProcess<Tree> = PerProcess::new();

/// Forgets the scopes of the parent, most of whose owners and members do not exist here.
pub(crate) fn after_fork() {
    TREE.after_fork();
}

impl Default for Tree {
    fn default() -> Tree {
        Tree(core::array::from_fn(|_| TreeShard {
            scopes: Lock::new(List::new()),
            len: AtomicUsize::new(0),
        }))
    }
}

/// Returns the list that has the scope with this id.
pub(super) fn shard(id: u64) -> &'static TreeShard {
    &TREE.get().0[id as usize % SHARDS]
}

impl Linked for ScopeState {
    fn links(&self) -> &Links<ScopeState> {
        &self.place
    }
}

impl TreeShard {
    /// Notes the length of the list, under its lock.
    fn set_len(&self, change: impl FnOnce(usize) -> usize) {
        let len = change(self.len.load(Ordering::Relaxed)); // Relaxed: statistics only.
        self.len.store(len, Ordering::Relaxed); // Relaxed: statistics only.
    }
}

/// Returns the number of open scopes.
#[cfg(feature = "dump")]
pub(crate) fn len() -> usize {
    let shards = TREE.get().0.iter();
    shards.map(|shard| shard.len.load(Ordering::Relaxed)).sum() // Relaxed: statistics only.
}

/// Adds a scope to the tree.
///
/// # Safety
/// The scope is not in the tree yet, and stays in its place until it has been [removed](remove).
pub(super) unsafe fn add(scope: &ScopeState) {
    let mut scopes = scope.shard.scopes.lock();
    // SAFETY: the caller's contract.
    unsafe { scopes.append(scope) };
    scope.shard.set_len(|len| len + 1);
}

/// Removes a scope from the tree.
pub(super) fn remove(scope: &ScopeState) {
    if scope.is_left_behind() {
        return;
    }
    let mut scopes = scope.shard.scopes.lock();
    // SAFETY: the scope can be in no other list.
    let removed = unsafe { scopes.remove(scope) };
    scope.shard.set_len(|len| len - usize::from(removed));
}

/// A unique identifier of a scope. It is never used again in the same process.
///
/// # Examples
/// ```
/// use pirn::scope;
/// scope::Builder::new().open(|_| {
///     let ids: Vec<scope::ScopeId> = scope::snapshot().iter().map(|scope| scope.id).collect();
///     assert!(ids.is_sorted()); // by age
///     Ok(())
/// })?;
/// # Ok::<(), scope::JoinError<std::fmt::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeId(NonZeroU64);

impl ScopeId {
    fn of(scope: &ScopeState) -> ScopeId {
        // Ids start at 1.
        ScopeId(NonZeroU64::new(scope.id).unwrap_or(NonZeroU64::MAX))
    }

    /// Returns the number.
    #[cfg(feature = "dump")]
    pub(crate) fn number(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Debug for ScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScopeId").field(&self.0).finish()
    }
}

/// A scope as it was at one moment.
///
/// Its `Debug` output shows all fields.
///
/// # Examples
/// ```
/// use pirn::scope;
/// scope::Builder::new().name("orders").open(|_| {
///     let open = scope::snapshot();
///     let orders = open.iter().find(|scope| scope.name.as_deref() == Some("orders")).unwrap();
///     assert!(!orders.cancelled && orders.parent.is_none() && orders.subtasks.is_empty());
///     Ok(())
/// })?;
/// # Ok::<(), scope::JoinError<std::fmt::Error>>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ScopeInfo {
    /// The scope's identifier.
    pub id: ScopeId,
    /// The scope's [name](super::Builder::name).
    pub name: Option<Arc<str>>,
    /// The scope in which it was opened: its owner's, or the one in which its owner was forked.
    pub parent: Option<ScopeId>,
    /// The thread that opened the scope.
    pub owner: Thread,
    /// Whether the scope has been cancelled.
    pub cancelled: bool,
    /// The subtasks that have not ended.
    pub subtasks: Vec<Thread>,
}

impl ScopeInfo {
    /// Describes one scope, for its owner or a subtask.
    pub(super) fn of(scope: &ScopeState) -> ScopeInfo {
        let mut info = ScopeInfo::bare(scope);
        // Memory is never allocated under a lock of the runtime.
        while let Err(needed) = fill(scope, &mut info.subtasks) {
            info.subtasks.reserve(needed);
        }
        info
    }

    /// Describes a scope without its subtasks, and without allocating.
    fn bare(scope: &ScopeState) -> ScopeInfo {
        ScopeInfo {
            id: ScopeId::of(scope),
            name: scope.name.clone(),
            parent: scope.parent().map(ScopeId::of),
            owner: scope.owner.clone(),
            cancelled: scope.is_cancelled(),
            subtasks: Vec::new(),
        }
    }

    /// Returns the ids of the scope's subtasks.
    pub fn subtask_ids(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.subtasks.iter().map(Thread::id)
    }
}

/// Adds a scope's members to a list. Fails with the capacity that the list lacks.
fn fill(scope: &ScopeState, threads: &mut Vec<Thread>) -> Result<(), usize> {
    if scope.is_left_behind() {
        return Ok(());
    }
    let inner = scope.inner.lock();
    if threads.capacity() - threads.len() < inner.running {
        return Err(inner.running);
    }
    for list in [&inner.members, &inner.interrupted] {
        threads.extend(list.iter().filter_map(Member::thread));
    }
    Ok(())
}

/// Returns all open scopes, in the order in which they were opened, each with its owner and the
/// subtasks that run in it.
///
/// Each scope is seen at a different moment. The list is flat, linked by
/// [`parent`](ScopeInfo::parent)s, as in Loom's thread dumps.
///
/// # Examples
/// ```
/// use pirn::{scope, thread};
///
/// scope::Builder::new().name("outer").open(|s| {
///     let parked = s.fork(|| thread::park_interruptible());
///     let tree = scope::snapshot();
///     let outer = tree.iter().find(|scope| scope.name.as_deref() == Some("outer")).unwrap();
///     assert_eq!(outer.owner.id(), thread::current().id());
///     assert!(outer.subtask_ids().eq([parked.thread().unwrap().id()]));
///     parked.thread().unwrap().unpark();
///     s.join()?;
///     Ok(())
/// })?;
/// # Ok::<(), scope::JoinError<thread::Interrupted>>(())
/// ```
pub fn snapshot() -> Vec<ScopeInfo> {
    let mut scopes: Vec<_> = copies(true).into_iter().map(|(scope, _)| scope).collect();
    scopes.sort_unstable_by_key(|scope| scope.id);
    scopes
}

/// Returns all open scopes without their subtasks, each with the number of those, in no order.
#[cfg(feature = "dump")]
pub(crate) fn outlines() -> Vec<(ScopeInfo, usize)> {
    copies(false)
}

/// Returns all open scopes, each with the number of its subtasks; `all`: with the subtasks.
fn copies(all: bool) -> Vec<(ScopeInfo, usize)> {
    let mut scopes = Vec::new();
    for shard in &TREE.get().0 {
        let mut copy = Copy::default();
        while let Err((infos, threads)) = copy.fill(&shard.scopes, all) {
            // Drop the copies, and allocate, outside the lock.
            copy = Copy {
                infos: Vec::with_capacity(infos),
                threads: Vec::with_capacity(threads),
            };
        }
        let mut threads = copy.threads.into_iter();
        scopes.extend(copy.infos.into_iter().map(|(mut info, subtasks)| {
            info.subtasks = threads.by_ref().take(subtasks).collect();
            (info, subtasks)
        }));
    }
    scopes
}

/// A copy of a list of scopes, made under locks and therefore without allocating.
#[derive(Default)]
struct Copy {
    /// The scopes, each with the number of its subtasks.
    infos: Vec<(ScopeInfo, usize)>,
    /// The subtasks of the first scope, then of the second, and so on.
    threads: Vec<Thread>,
}

impl Copy {
    /// Fills this empty copy; `all`: with the subtasks. If the capacity is too small, fails with
    /// the capacity that is needed.
    fn fill(&mut self, shard: &Lock<List<ScopeState>>, all: bool) -> Result<(), (usize, usize)> {
        let scopes = shard.lock();
        let (mut count, mut members) = (0, 0);
        let mut enough = true;
        for scope in scopes.iter() {
            let mut running = scope.inner.lock().running;
            count += 1;
            members += if all { running } else { 0 };
            enough = enough && self.infos.len() < self.infos.capacity();
            if all && enough {
                let before = self.threads.len();
                enough = fill(scope, &mut self.threads).is_ok();
                running = self.threads.len() - before;
            }
            if enough {
                self.infos.push((ScopeInfo::bare(scope), running));
            }
        }
        // More scopes may be opened before the next attempt.
        match enough {
            true => Ok(()),
            false => Err((count + 8, members + 64)),
        }
    }
}

impl fmt::Debug for ScopeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope[#{}", self.id.0)?;
        if let Some(name) = &self.name {
            write!(f, ",{name}")?;
        }
        f.write_str(if self.cancelled { "]/cancelled " } else { "] " })?;
        f.debug_struct("")
            .field("owner", &self.owner)
            .field("parent", &self.parent.map(|parent| parent.0))
            .field("subtasks", &self.subtasks)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::{self, JoinError};
    use crate::testing::fork_while;

    #[test]
    fn the_child_of_a_fork_opens_scopes_whatever_its_parent_has_locked() {
        let hold = |meanwhile: &dyn Fn()| {
            let _all = TREE.get().0.each_ref().map(|shard| shard.scopes.lock());
            meanwhile();
        };
        fork_while(hold, || {
            let opened: Result<(), JoinError<fmt::Error>> = scope::open(|s| {
                assert_eq!(snapshot().len(), 1);
                s.join()?;
                Ok(())
            });
            assert!(opened.is_ok() && snapshot().is_empty());
        });
    }
}
