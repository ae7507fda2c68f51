//! Looking into a process with virtual threads, for [`pirn`](https://docs.rs/pirn), which wires this
//! crate by its feature `dump`. Programs see [`dump`](mod@dump), [`metrics`](mod@metrics) and
//! [`events`] there; nothing else here is stable.
//!
//! * [`dump`](mod@dump): all threads, with their stacks.
//! * [`metrics`](mod@metrics): what the runtime has counted, and how much there is of everything.
//! * [`events`]: what happened lately, as the recorder has it.
//! * `server`: how tools ask a running process, and which may.
//! * `diagnostics`: what is probably wrong, and what to do about it.
//! * `waits`: what threads wait for, and whether that can come.
//! * `debug_table`: where debuggers and readers of the process's memory find the runtime's data.
//! * [`Hooks`]: what the crates above tell this one at the start.

#![debugger_visualizer(gdb_script_file = "gdb/threads.py")]
#![debugger_visualizer(gdb_script_file = "gdb/commands.py")]
// `pirn` uses it, not programs.
#![allow(
    missing_docs,
    rustdoc::private_intra_doc_links,
    rustdoc::redundant_explicit_links
)]

#[doc(hidden)]
pub mod arch;
#[doc(hidden)]
pub mod debug_table;
#[doc(hidden)]
pub mod diagnostics;
pub mod dump;
pub mod events;
mod findings;
mod hooks;
pub mod metrics;
#[doc(hidden)]
pub mod server;
#[doc(hidden)]
pub mod waits;

#[doc(hidden)]
pub use hooks::{Hooks, StopSignal};
#[doc(hidden)]
pub use pirn_dump::Scope;

use std::ffi::OsString;

/// The commands for gdb, which `pirn gdb-script` prints.
#[doc(hidden)]
pub const GDB_SCRIPT: &str = concat!(
    include_str!("gdb/threads.py"),
    "\n\n",
    include_str!("gdb/commands.py"),
);

/// A variable with a value that is not accepted.
#[doc(hidden)]
#[derive(Debug)]
pub struct BadValue {
    pub name: &'static str,
    pub value: OsString,
    pub accepted: &'static str,
}

/// Forgets what the parent process had found, and its server.
///
/// # Safety
/// In the child of a fork that has no runtime yet.
#[doc(hidden)]
pub unsafe fn after_fork() {
    // SAFETY: the caller's contract.
    unsafe {
        server::after_fork();
        findings::after_fork();
    }
    dump::after_fork();
}
