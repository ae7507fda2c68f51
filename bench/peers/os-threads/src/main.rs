//! Benchmark peer: platform threads. The workloads are the very files of the peer `pirn`, which
//! says `use pirn::thread` where this one says `use std::thread`.

use std::{net, sync, thread};

mod scope;
#[path = "../../threads/servers/mod.rs"]
mod servers;
#[path = "../../threads/mod.rs"]
mod workloads;

/// The stack of a thread, if the workload gives no size.
const DEFAULT_STACK: usize = 2 << 20;

/// Nothing is to be done.
fn end_after_park() {}

fn main() -> std::process::ExitCode {
    peer_protocol::run("os-threads", env!("RUSTC_VERSION"), |name, params| {
        let of_its_own = (name == "scope").then(|| scope::new(params));
        let server = || servers::find(name, params);
        of_its_own
            .or_else(server)
            .or_else(|| workloads::find(name, params))
    })
}
