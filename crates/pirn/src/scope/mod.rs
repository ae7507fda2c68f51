//! Structured concurrency: scopes in which subtasks are forked and joined.
//!
//! A scope is a block that splits into concurrent subtasks, each on a thread of its own, and ends
//! when all of them have: by its end, by `?`, by a panic. What is started in it is over when it is
//! left, so subtasks may borrow from outside it, no thread is left behind, and a failure of one is
//! not lost and ends the others. (Loom's `StructuredTaskScope`, [JEP
//! 505](https://openjdk.org/jeps/505); what Java checks when the program runs, the compiler checks
//! here.)
//!
//! ```
//! use pirn::scope::JoinError;
//! # fn update_inventory(_: u32) -> Result<u32, String> { Ok(3) }
//! # fn update_order(id: u32) -> Result<String, String> { Ok(format!("order {id}")) }
//!
//! struct Response { in_stock: u32, order: String }
//!
//! fn handle_order(id: u32) -> Result<Response, JoinError<String>> {
//!     pirn::scope(|s| {
//!         let inventory = s.fork(|| update_inventory(id));
//!         let order = s.fork(|| update_order(id));
//!         let all = s.join()?; // the first failure cancels the other, and is the result
//!         Ok(Response { in_stock: inventory.get(&all), order: order.get(&all) })
//!     })
//! }
//! assert_eq!(handle_order(7).unwrap().order, "order 7");
//! ```
//!
//! In short, when there is nothing else to do:
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
//! When a scope is over, and what its join gives, is the matter of a [`Joiner`]:
//!
//! | joiner | its join gives | it cancels on |
//! |---|---|---|
//! | [`await_all_successful`], that of [`pirn::scope`](crate::scope()) | the proof by which subtasks are [read](Subtask::get) | the first failure |
//! | [`all_successful`] | all values, in the order of forks | the first failure |
//! | [`any_successful`] | the first value; an error if there is none | the first success |
//! | [`await_all`] | nothing | never |
//! | [`all_until`] | what came of each | the predicate |
//! | [`shutdown_on_failure`] | the first failure, to be thrown or not | the first failure |
//! | [`shutdown_on_success`] | the first success, or else failure | the first success |
//!
//! Any other is written by implementing [`Joiner`] and [`JoinerFor`].
//!
//! # Cancellation
//!
//! A scope is cancelled by its joiner, when its [time](Builder::timeout) is up, when its owner is
//! [interrupted](crate::thread::Thread::interrupt) while it waits for its subtasks, when its owner
//! leaves it without a join, by `?` or a panic, and by [`TaskScope::cancel`]. Then nothing more is
//! started, the join returns, and the subtasks that run are interrupted: see
//! [`Thread::interrupt`](crate::thread::Thread::interrupt) for what ends by that. A subtask that
//! does not hear it is waited for all the same.

// `task_scope` is the scope as its owner sees it, `state` what the owner and the members share (who
// runs, and whether it is cancelled), `member` a membership. `fork` and `platform` start the
// threads of subtasks, `packet` is where they leave results, `subtask` reads them. `joined` has the
// proofs that a scope has been joined, `joiner` what a joiner is, `joiners` those that come with
// the library, `keeper` the deadlines, and `tree` the list of all scopes.

mod all;
mod builder;
mod error;
mod fork;
mod joined;
mod joiner;
pub mod joiners;
mod keeper;
mod member;
mod packet;
mod platform;
mod state;
mod subtask;
mod task_scope;
mod tree;

pub use all::{Tasks, all, any};
pub use builder::Builder;
pub use error::{Failure, JoinError};
pub use joined::{Ended, Joined, Unjoined};
pub use joiner::{Completed, Joiner, JoinerFor};
pub use joiners::all_successful::all_successful;
pub use joiners::all_until::all_until;
pub use joiners::any_successful::any_successful;
pub use joiners::await_all::await_all;
pub use joiners::await_all_successful::{AllOk, await_all_successful};
pub use joiners::shutdown::{shutdown_on_failure, shutdown_on_success};
/// Loom's names of two joiners, as part of its `StructuredTaskScope`.
#[doc(no_inline)]
pub use joiners::{ShutdownOnFailure, ShutdownOnSuccess};
pub use subtask::{State, Subtask, SubtaskError};
pub use task_scope::TaskScope;
pub use tree::{ScopeId, ScopeInfo, snapshot};

/// Opens a scope for subtasks that may fail with an `E`, the first of which cancels the others.
///
/// Calls `f` with the scope; when this returns, nothing that was forked in it runs any more. The
/// joiner is [`await_all_successful`]; [`with`] takes another, [`Builder`] names, timeouts and
/// limits. Subtasks that cannot fail need none of this: there is
/// [`thread::scope`](crate::thread::scope).
///
/// # Errors
/// What `f` gives: mostly that of the [join](TaskScope::join).
///
/// # Panics
/// If `f` panics, or returns `Ok` without having joined what it has forked.
///
/// # Examples
/// ```
/// let numbers = [1, 2, 3, 4];
/// let sum = pirn::scope(|s| {
///     let (low, high) = numbers.split_at(2); // borrowed by both
///     let low = s.fork(|| low.iter().copied().reduce(|a, b| a + b).ok_or("empty"));
///     let high = s.fork(|| high.iter().copied().reduce(|a, b| a + b).ok_or("empty"));
///     let all = s.join()?;
///     Ok(low.get(&all) + high.get(&all))
/// });
/// assert_eq!(sum.unwrap(), 10);
/// ```
#[track_caller]
pub fn scope<'env, E, R, F>(f: F) -> Result<R, JoinError<E>>
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
/// What `f` gives: mostly that of the [join](TaskScope::join).
///
/// # Panics
/// If `f` panics, or returns `Ok` without having joined what it has forked.
///
/// # Examples
/// ```
/// use pirn::scope;
/// let fastest = scope::with(scope::any_successful(), |s| {
///     s.fork(|| Err("broken"));
///     s.fork(|| Ok("working"));
///     Ok(s.join()?.into_output())
/// });
/// assert_eq!(fastest.unwrap(), "working");
/// ```
#[track_caller]
pub fn with<'env, J, R, F>(joiner: J, f: F) -> Result<R, JoinError<J::Error>>
where
    J: Joiner,
    F: for<'scope> FnOnce(TaskScope<'scope, 'env, J>) -> Result<R, JoinError<J::Error>>,
{
    Builder::new().open_with(joiner, f)
}
