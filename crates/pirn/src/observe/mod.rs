//! Seeing inside: what people and tools learn about a running process.
//!
//! * [`debug_table`]: where debuggers and readers of the process's memory find the runtime's data.
//! * [`lints`]: what is probably wrong, and what to do about it.

pub(crate) mod debug_table;
pub(crate) mod lints;
