//! Files and folders: the kernel's operations on paths and open files, except reading and writing.

pub(in crate::interpose) mod cached;
pub(in crate::interpose) mod calls;
pub(in crate::interpose) mod copy;
pub(in crate::interpose) mod dir;
mod fifo;
pub(in crate::interpose) mod lock;
pub(in crate::interpose) mod open;
pub(in crate::interpose) mod scan;
