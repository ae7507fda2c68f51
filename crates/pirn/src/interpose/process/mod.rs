//! What concerns the whole process: children, signals, identity, shared libraries.

mod credentials;
pub(in crate::interpose) mod dlfcn;
pub(crate) mod fork;
pub(in crate::interpose) mod signal;
mod sigwait;
pub(in crate::interpose) mod wait;

pub(crate) use credentials::started;
