//! Descriptors: sockets, pipes, files, child processes, and waiting for several at once.

#[path = "../common/mod.rs"]
mod common;

mod bad_pointers;
mod child_processes;
mod close;
mod close_range;
mod connecting;
mod crowded_descriptor;
mod few_descriptors;
mod fifos;
mod files;
mod partly_cached;
mod pipes;
mod polling;
mod select;
mod select_large;
mod short_reads;
mod socket_modes;
mod tcp;
mod udp_and_unix;
mod unseen_calls;
