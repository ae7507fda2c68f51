//! Benchmark peer: platform threads. The workloads are the very files of the peer `pirn`, which
//! says `use pirn::thread` where this one says `use std::thread`.

use std::thread;

mod scope;
#[path = "../../threads/mod.rs"]
mod workloads;

/// Of a thread, where nobody says otherwise.
const DEFAULT_STACK: usize = 2 << 20;

fn main() -> std::process::ExitCode {
    peer_protocol::run("os-threads", env!("RUSTC_VERSION"), workloads::find)
}
