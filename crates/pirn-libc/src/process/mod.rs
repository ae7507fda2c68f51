//! Functions that concern the whole process: children, identity, shared libraries.

pub(crate) mod credentials;
pub(crate) mod dlfcn;
pub(crate) mod exec;
pub mod fork;
pub(crate) mod inherit;
pub mod linker;
pub(crate) mod os_thread;
pub(crate) mod sysv;
pub(crate) mod wait;
