//! Structured concurrency: scopes in which subtasks are forked and joined.
//!
//! A scope is a block that splits into concurrent subtasks, each on a thread of its own. The scope
//! ends when all of them have ended, however the block is left: by its end, by `?`, or by a panic.
//! So subtasks may borrow from outside the scope, no thread is left behind, and the failure of one
//! subtask is not lost and ends the others. (This is Loom's `StructuredTaskScope`, [JEP
//! 505](https://openjdk.org/jeps/505); what Java checks at run time, the compiler checks here.)
//!
//! ```
//! use pirn::scope::JoinError;
//! # fn update_inventory(_: u32) -> Result<u32, String> { Ok(3) }
//! # fn update_order(id: u32) -> Result<String, String> { Ok(format!("order {id}")) }
//!
//! struct Response { in_stock: u32, order: String }
//!
//! fn handle_order(id: u32) -> Result<Response, JoinError<String>> {
//!     pirn::scope::open(|s| {
//!         let inventory = s.fork(|| update_inventory(id));
//!         let order = s.fork(|| update_order(id));
//!         let all = s.join()?; // the first failure cancels the other, and is the result
//!         Ok(Response { in_stock: inventory.get(&all), order: order.get(&all) })
//!     })
//! }
//! assert_eq!(handle_order(7).unwrap().order, "order 7");
//! ```
//!
//! The short form, for a scope that does nothing else:
//!
//! ```
//! use pirn::scope;
//! # fn update_inventory(_: u32) -> Result<u32, String> { Ok(3) }
//! # fn update_order(id: u32) -> Result<String, String> { Ok(format!("order {id}")) }
//! let (in_stock, order) = scope::all((|| update_inventory(7), || update_order(7)))?;
//! # assert_eq!((in_stock, &*order), (3, "order 7"));
//! # Ok::<(), scope::JoinError<String>>(())
//! ```
//!
//! # Joiners
//!
//! A [`Joiner`] decides when a scope is over and what its join returns:
//!
//! | joiner | its join returns | it cancels on |
//! |---|---|---|
//! | [`await_all_successful`], the joiner of [`scope::open`](crate::scope::open) | the proof by which subtasks are [read](Subtask::get) | the first failure |
//! | [`all_successful`] | all values, in the order of forks | the first failure |
//! | [`any_successful`] | the first value; an error if all fail | the first success |
//! | [`await_all`] | nothing | never |
//! | [`all_until`] | the result of each subtask | the predicate |
//!
//! Loom's earlier names are aliases: `ShutdownOnFailure` of `await_all_successful`, and
//! `ShutdownOnSuccess` of `any_successful`.
//!
//! Programs write other joiners by implementing [`Joiner`] and [`JoinerFor`].
//!
//! # Cancellation
//!
//! A scope is cancelled by its joiner, when its [time](Builder::timeout) is up, when its owner is
//! [interrupted](crate::thread::Thread::interrupt) while it waits for its subtasks, when its owner
//! leaves it without a join (by `?` or a panic), and by [`TaskScope::cancel`]. Then no more
//! subtasks are started, the join returns, and the running subtasks are interrupted;
//! [`Thread::interrupt`](crate::thread::Thread::interrupt) lists the waits that an interrupt ends.
//! The scope still waits for a subtask that ignores the interrupt.

// `task_scope` is the scope as its owner sees it, `state` what owner and members share (the running
// members and the cancellation). `subtask` runs subtasks, and reads their results after the join.
// `joiner` has the traits of joiners, `joiners` those that come with the library. `deadline`
// watches the clock, also for calls without a scope, and `tree` lists all scopes.

mod all;
mod deadline;
mod error;
mod joiner;
mod joiners;
mod state;
mod subtask;
mod task_scope;
pub(crate) mod tree;

/// A supertrait that other crates cannot name, so that the library may add to the traits that have
/// it.
mod sealed {
    pub trait Sealed {}
}

pub use all::{Tasks, all, any};
pub use deadline::{deadline, with_deadline};
pub use error::{Failure, JoinError};
pub use joiner::{Completed, Joiner, JoinerFor};
pub use joiners::{
    AllOk, AllSuccessful, AllUntil, AnySuccessful, AwaitAll, AwaitAllSuccessful, all_successful,
    all_until, any_successful, await_all, await_all_successful,
};
/// Loom's names, of JDK 19 to 24, for two of the joiners.
#[doc(no_inline)]
pub use joiners::{
    AnySuccessful as ShutdownOnSuccess, AwaitAllSuccessful as ShutdownOnFailure,
    any_successful as shutdown_on_success, await_all_successful as shutdown_on_failure,
};
pub use subtask::{Ended, Joined, State, Subtask, SubtaskError, Unjoined};
pub use task_scope::{Builder, TaskScope};
pub use tree::{ScopeId, ScopeInfo, snapshot};
#[cfg(feature = "dump")]
pub(crate) use tree::{len as count, outlines};

/// Opens a scope for subtasks that may fail with an `E` (Loom's `StructuredTaskScope.open`). The
/// first failure cancels the others.
///
/// Calls `f` with the scope. When this function returns, nothing that was forked in the scope runs
/// any more. The joiner is [`await_all_successful`]; [`open_with`] takes another, and [`Builder`]
/// sets names, timeouts and limits. Subtasks that cannot fail can use the simpler
/// [`thread::scope`](crate::thread::scope).
///
/// # Errors
/// The error that `f` returns, usually from the [join](TaskScope::join).
///
/// # Panics
/// If `f` panics, or returns `Ok` without having joined the subtasks that it forked.
///
/// # Examples
/// ```
/// let numbers = [1, 2, 3, 4];
/// let sum = pirn::scope::open(|s| {
///     let (low, high) = numbers.split_at(2); // borrowed by both
///     let low = s.fork(|| low.iter().copied().reduce(|a, b| a + b).ok_or("empty"));
///     let high = s.fork(|| high.iter().copied().reduce(|a, b| a + b).ok_or("empty"));
///     let all = s.join()?;
///     Ok(low.get(&all) + high.get(&all))
/// });
/// assert_eq!(sum.unwrap(), 10);
/// ```
#[track_caller]
pub fn open<'env, E, R, F>(f: F) -> Result<R, JoinError<E>>
where
    E: Send,
    F: for<'scope> FnOnce(
        TaskScope<'scope, 'env, joiners::AwaitAllSuccessful<E>>,
    ) -> Result<R, JoinError<E>>,
{
    Builder::new().open(f)
}

/// Opens a scope with a joiner.
///
/// # Errors
/// The error that `f` returns, usually from the [join](TaskScope::join).
///
/// # Panics
/// If `f` panics, or returns `Ok` without having joined the subtasks that it forked.
///
/// # Examples
/// ```
/// use pirn::scope;
/// let fastest = scope::open_with(scope::any_successful(), |s| {
///     s.fork(|| Err("broken"));
///     s.fork(|| Ok("working"));
///     Ok(s.join()?.into_output())
/// });
/// assert_eq!(fastest.unwrap(), "working");
/// ```
#[track_caller]
pub fn open_with<'env, J, R, F>(joiner: J, f: F) -> Result<R, JoinError<J::Error>>
where
    J: Joiner,
    F: for<'scope> FnOnce(TaskScope<'scope, 'env, J>) -> Result<R, JoinError<J::Error>>,
{
    Builder::new().open_with(joiner, f)
}
