//! Files and folders: the kernel's operations on paths and open files, except reading and writing.

pub(crate) mod cached;
pub(crate) mod calls;
pub(crate) mod dir;
pub(crate) mod lock;
pub(crate) mod open;
