//! AArch64: numbers of system calls of x86-64 that it does not have. Here no call has the number.

use libc::c_long;

pub const ARCH_PRCTL: c_long = -1000;
pub const DUP2: c_long = -1001;
pub const EPOLL_WAIT: c_long = -1002;
pub const IOPERM: c_long = -1003;
pub const IOPL: c_long = -1004;
pub const OPEN: c_long = -1005;
pub const PAUSE: c_long = -1006;
pub const PIPE: c_long = -1007;
pub const POLL: c_long = -1008;
pub const SELECT: c_long = -1009;
