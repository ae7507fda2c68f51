//! The runtime itself: its settings, schedulers, carriers, and its cost at rest.

#[path = "../common/mod.rs"]
mod common;

mod exhaustion;
mod failing_calls;
mod fair_locks;
mod idle;
mod large_stacks;
mod memory_of_keys;
mod one_page;
mod page_tables;
mod preemption;
mod preemption_signals;
mod schedulers;
mod seccomp;
mod settings;
mod spare_carriers;
mod stranded;
mod turns;
mod without_fsgsbase;
mod yielding;
