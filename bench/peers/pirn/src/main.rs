//! Benchmark peer: virtual threads. The workloads are the very files of the peer `os-threads`,
//! which says `use std::thread` where this one says `use pirn::thread`. Scopes and actors are in
//! files of its own.

use pirn::thread;
use std::{net, sync};

mod actors;
mod scope;
#[path = "../../threads/servers/mod.rs"]
mod servers;
#[path = "../../threads/mod.rs"]
mod workloads;

/// The stack of a thread, if the workload gives no size.
const DEFAULT_STACK: usize = 256 << 10;

/// Nothing is to be done.
fn end_after_park() {}

fn main() -> std::process::ExitCode {
    let version = concat!(
        "pirn ",
        env!("CARGO_PKG_VERSION"),
        ", ",
        env!("RUSTC_VERSION")
    );
    // The peer `pirn-process` is the same program, called with this word.
    let mut args = std::env::args().skip(1).peekable();
    if args.next_if_eq("processes").is_some() {
        let find = peer_protocol::actors::find::<actors::Processes>;
        return peer_protocol::run_with("pirn-process", version, args, find);
    }
    peer_protocol::run_with("pirn", version, args, |name, params| {
        let of_its_own = (name == "scope").then(|| scope::new(params));
        of_its_own
            .or_else(|| peer_protocol::actors::find::<actors::Handlers>(name, params))
            .or_else(|| servers::find(name, params))
            .or_else(|| workloads::find(name, params))
    })
}
