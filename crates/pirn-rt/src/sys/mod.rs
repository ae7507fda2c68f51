//! System calls and the runtime's own clock. Nothing here can reach an interposed symbol.
//!
//! The runtime must not call `read`, `futex` and the like through libc's names, because in this
//! program those names are its own. Everything here goes to the kernel directly, or to libc
//! functions that are never interposed and never block.
//!
//! * [`call`](mod@call): making a system call, and its result.
//! * [`files`], [`memory`], [`threads`]: the calls that several parts of the runtime make.
//! * [`sleeper`]: sleeping until others have work.
//! * [`report`]: messages, and ending the process.

pub mod call;
mod files;
mod memory;
mod report;
mod sleeper;
mod threads;

pub use crate::time::{clock, nanos, now, timespec};
pub use call::{Errno, SysResult, call, check, errno, set_errno, to_c, uninterrupted};
pub use files::{
    close_file, events_now, is_file, is_plain_tcp, open_file, poll_for, poll_now, poll_until,
    read_at_start, read_file, socket_option, status_flags,
};
pub(crate) use memory::SMALLEST_PAGE;
pub use memory::{
    barrier_in_every_thread, fetch_time, fetch_timeout, fetch_timespec, fetch_u8, fetch_u32,
    fetch_u64, map, page_size, store_timespec, store_u64,
};
pub(crate) use report::FixedText;
pub use report::{complain, fatal, notice_once};
pub use sleeper::Sleeper;
pub use threads::{
    SignalInfo, back_off, block_only, blocked_signals, futex_wait, futex_wake, futex_wake_at,
    is_first_thread, nap, os_thread_id, os_yield, send_signal, unblock_signal,
};
