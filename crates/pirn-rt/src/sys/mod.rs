//! System calls and the runtime's own clock. Nothing here can reach an interposed symbol.
//!
//! The runtime must not call `read`, `futex` and the like through libc's names, because in this
//! program those names are its own. Everything here goes to the kernel directly, or to libc
//! functions that are never interposed and never block.
//!
//! * [`call`](mod@call): making a system call, and its result. [`file`], [`memory`], [`poll`],
//!   [`futex`]: the calls that several parts of the runtime make.
//! * [`user`]: reading the program's memory as the kernel does.
//! * [`signal`]: signals of platform threads.
//! * [`pause`]: yielding and napping. [`membarrier`]: barriers in other threads. [`report`]:
//!   messages, and ending the process.

pub mod call;
mod file;
mod futex;
mod membarrier;
mod memory;
mod pause;
mod poll;
mod report;
mod signal;
mod text;
mod user;

pub use crate::time::{clock, nanos, now, timespec};
pub use call::{
    Errno, SysResult, call, check, errno, is_first_thread, os_thread_id, set_errno, to_c,
    uninterrupted,
};
pub use file::{
    close_file, is_file, is_plain_tcp, open_file, read_at_start, read_file, socket_option,
    status_flags,
};
pub use futex::{futex_wait, futex_wake, futex_wake_at};
pub use membarrier::barrier_in_every_thread;
pub use memory::map;
pub use pause::{back_off, nap, os_yield};
pub use poll::{events_now, poll_for, poll_now, poll_until};
pub use report::{complain, fatal};
pub use signal::{SignalInfo, block_only, blocked_signals, send_signal, unblock_signal};
pub(crate) use text::FixedText;
pub use user::{
    fetch_time, fetch_timeout, fetch_timespec, fetch_u8, fetch_u32, fetch_u64, store_timespec,
    store_u64,
};
