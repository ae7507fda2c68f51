//! Functions that concern the whole process: children, signals, identity, shared libraries.

pub(crate) mod credentials;
pub(crate) mod dlfcn;
pub(crate) mod exec;
pub(crate) mod exit;
pub mod fork;
pub(crate) mod handler;
pub(crate) mod inherit;
pub mod linker;
pub(crate) mod lookups;
pub(crate) mod os_thread;
pub mod quit;
pub mod signals;
pub(crate) mod sigwait;
pub(crate) mod stand_in;
pub(crate) mod sysv;
pub mod urgent;
pub(crate) mod wait;
