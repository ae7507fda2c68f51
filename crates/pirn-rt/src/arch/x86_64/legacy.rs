//! x86-64: numbers of system calls that newer processors do not have. Programs make these calls by
//! number; the runtime makes others in their place.

use libc::c_long;

pub const ARCH_PRCTL: c_long = libc::SYS_arch_prctl;
pub const DUP2: c_long = libc::SYS_dup2;
pub const EPOLL_WAIT: c_long = libc::SYS_epoll_wait;
pub const IOPERM: c_long = libc::SYS_ioperm;
pub const IOPL: c_long = libc::SYS_iopl;
pub const OPEN: c_long = libc::SYS_open;
pub const PAUSE: c_long = libc::SYS_pause;
pub const PIPE: c_long = libc::SYS_pipe;
pub const POLL: c_long = libc::SYS_poll;
pub const SELECT: c_long = libc::SYS_select;
