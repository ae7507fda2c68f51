//! What the benchmark harness measures servers from: its own clients (the program `bench-load`,
//! whose output [`report`] describes), `wrk` and `h2load` (whose output [`wrk`] and [`h2load`]
//! read).
//!
//! The clients are written with tokio and bare sockets whatever the server is written with: one
//! neutral client for all peers, on one thread, as cheap as it can be, so that the server and not
//! the client is measured. The same holds for the backend that gateways call. Where a peer is
//! itself written with tokio, it shares nothing with the client but the library: each is a process.

pub mod h2load;
pub mod report;
pub mod wrk;
