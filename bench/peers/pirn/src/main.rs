//! Benchmark peer: virtual threads. The workloads are the very files of the peer `os-threads`,
//! which says `use std::thread` where this one says `use pirn::thread`. Scopes and actors are in
//! files of its own.

use pirn::thread;

mod actors;
mod scope;
#[path = "../../threads/mod.rs"]
mod workloads;

/// Of a thread, where nobody says otherwise.
const DEFAULT_STACK: usize = 256 << 10;

fn main() -> std::process::ExitCode {
    let version = concat!(
        "pirn ",
        env!("CARGO_PKG_VERSION"),
        ", ",
        env!("RUSTC_VERSION")
    );
    peer_protocol::run("pirn", version, |name, params| {
        actors::find(name, params).or_else(|| workloads::find(name, params))
    })
}
