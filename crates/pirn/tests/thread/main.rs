//! Threads: `pirn::thread` compared with `std::thread`, interruption, panics, stacks,
//! thread-locals, `std::sync`.

#[path = "../common/mod.rs"]
mod common;

mod async_io;
mod beyond_std;
mod block_on;
mod channels;
mod interrupt;
mod join_handles;
mod like_std;
mod macros;
mod panics;
mod parker;
mod scoped_values;
mod semaphore;
mod stacks;
mod sync;
mod thread_locals;
