//! Benchmark peer: coroutines of the crate may. The workloads are the very files of the peers
//! `pirn` and `os-threads`, with may's `sync` and `net`, and `thread` for its coroutines; its HTTP
//! server is may_minihttp.
//!
//! may is used as it comes. Its number of workers follows the CPU affinity by default (it asks
//! `num_cpus`, which asks `sched_getaffinity`), and its stacks of 32 KiB hold every workload but
//! `deep`.

mod http;
mod http_client;
mod scope;
mod thread;
#[path = "../../threads/mod.rs"]
mod workloads;

use may::net;
use std::panic;
use std::process::ExitCode;

/// may's, with the bounded channel that it does not have: its channels are not bounded.
mod sync {
    pub use may::sync::{Condvar, Mutex};

    pub mod mpsc {
        pub use may::sync::mpsc::{Receiver, Sender, channel};

        pub fn sync_channel<T>(_: usize) -> (Sender<T>, Receiver<T>) {
            channel()
        }
    }
}

/// Of a coroutine.
const DEFAULT_STACK: usize = 32 << 10;

/// may 0.3.51 resumes a coroutine that is unparked in the instant in which it parks from within
/// its own `park`. If it then ends, without waiting once more, and its handle has been dropped,
/// may waits for that `park` to be over before it frees the coroutine: forever, and the worker is
/// lost. A yield leaves the `park`.
fn end_after_park() {
    thread::yield_now();
}

fn main() -> ExitCode {
    // Without a backtrace: one needs memory mappings, and may panics when it has used up all that
    // the kernel allows (two for each coroutine; vm.max_map_count).
    panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    peer_protocol::run("may", env!("MEASURED"), |name, params| {
        Some(match name {
            "hogs" | "malloc" => return None,
            "scope" => scope::scope(params),
            "serve" => http::serve(params),
            "gateway" => http::gateway(params),
            "http-server" => http::http_server(params),
            _ => return workloads::find(name, params),
        })
    })
}
