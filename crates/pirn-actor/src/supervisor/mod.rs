//! Supervision: children that are started in order, restarted when they fail, ended in reverse.
//!
//! ```text
//!   Supervisor --start--> Tree (handle) --------- stop ----------> the runner's thread
//!                           | get, children                          |  ^
//!                           v                      hold, go on, end  |  | ready, held, ended
//!                         Table (shared) <------- how they are ----- v  |
//!                                                               children: actors, processes,
//!                                                               keepers of their own children
//! ```
//!
//! A child that fails keeps its mailbox: it is *held* by the core until the runner has it go on,
//! and then its recipe makes another state. So a reference is good for as long as nobody ends the
//! child on purpose, and messages wait for the restart.

mod builder;
mod error;
mod events;
mod node;
mod plan;
mod run;
mod table;
mod tree;

pub use builder::Supervisor;
pub use error::{NoChild, StartError};
pub use events::TreeEvent;
pub use table::{ChildInfo, ChildState};
pub use tree::{Siblings, Tree};
