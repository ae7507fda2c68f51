//! Supervision: children that are started in order, restarted when they fail, and ended in reverse.
//!
//! ```text
//!   Supervisor --start--> Tree (handle) --------- stop ----------> the runner's thread
//!                           | get, children                          |  ^
//!                           v                    hold, go on, end    |  | ready, held, ended
//!                         Table (shared) <----- the children's state v  |
//!                                                               children: actors, processes,
//!                                                               runners of their own children
//! ```
//!
//! A child that fails keeps its mailbox: the mailbox is *held* until the runner releases it, and
//! then the recipe makes another state. So a reference stays good unless other code ends the child,
//! and messages wait for the restart.

mod builder;
mod events;
mod node;
mod plan;
mod run;
mod table;
mod tree;

pub use builder::{StartError, Supervisor};
pub(crate) use events::Reporter;
pub use events::TreeEvent;
pub use table::{ChildInfo, ChildState};
pub use tree::{Siblings, Tree};
