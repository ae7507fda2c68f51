//! Input and output on any descriptor: reading, writing, waiting until that is possible.

pub(in crate::interpose) mod fcntl;
pub(in crate::interpose) mod fortified;
pub(in crate::interpose) mod poll;
pub(in crate::interpose) mod rw;
pub(in crate::interpose) mod select;
pub(in crate::interpose) mod stdio;
pub(in crate::interpose) mod transfer;
