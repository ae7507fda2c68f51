//! The types of the joiners that come with the library, and of some of their results.
//!
//! The functions that make them are in [`scope`](super). A program names these types only where it
//! passes a joiner, or a scope with one, to another function.

pub(super) mod all_successful;
pub(super) mod all_until;
pub(super) mod any_successful;
pub(super) mod await_all;
pub(super) mod await_all_successful;
mod kept_failure;
pub(super) mod shutdown;

pub use all_successful::AllSuccessful;
pub use all_until::AllUntil;
pub use any_successful::AnySuccessful;
pub use await_all::AwaitAll;
pub use await_all_successful::AwaitAllSuccessful;
pub use shutdown::{FirstFailure, FirstSuccess, ShutdownOnFailure, ShutdownOnSuccess};
