//! What a dump contains.
//!
//! ```text
//!   Group ----> Stack ----> Module          places, stacks and modules are there once;
//!     | \-----> Place                       whatever refers to them has their index
//!     v
//!   Thread ---> Stack, Place, Scope (id), Carrier (number)
//! ```
//!
//! A dump is made thread by thread while the program runs: each thread's record is true of one
//! moment, and two records may be of different moments.

mod process;
mod thread;
mod wait;

pub use process::{Carrier, CarrierState, Memory, Module, Process, Totals};
pub use thread::{End, Finding, Group, Place, Scope, Stack, State, Thread};
pub use wait::{Ends, LockKind, Wait, WaitKind};

/// Everything that a process says about its threads.
///
/// All times are nanoseconds since 1970, UTC.
///
/// # Examples
/// ```
/// let dump = pirn_dump::Dump::default();
/// assert_eq!(dump.totals.alive(), 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dump {
    /// The process, and when the dump was made.
    pub process: Process,
    /// Numbers of threads.
    pub totals: Totals,
    /// The platform threads that run virtual threads.
    pub carriers: Vec<Carrier>,
    /// The program and its libraries, in which the frames lie.
    pub modules: Vec<Module>,
    /// The places that threads were spawned at. Threads and groups refer to them by index.
    pub places: Vec<Place>,
    /// The different stacks. Threads and groups refer to them by index.
    pub stacks: Vec<Stack>,
    /// The open scopes.
    pub scopes: Vec<Scope>,
    /// Threads that are alike, largest group first. They count all threads that were looked at,
    /// also those that are not in [`threads`](Dump::threads).
    pub groups: Vec<Group>,
    /// All threads, or only the groups' examples.
    pub threads: Vec<Thread>,
    /// What the process noticed: cycles of waiting threads, and the like.
    pub findings: Vec<Finding>,
    /// What the runtime uses memory for.
    pub memory: Vec<Memory>,
}
