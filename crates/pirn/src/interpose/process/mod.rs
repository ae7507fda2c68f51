//! Functions that concern the whole process: children, signals, identity, shared libraries.

pub(in crate::interpose) mod credentials;
pub(in crate::interpose) mod dlfcn;
pub(in crate::interpose) mod exec;
pub(in crate::interpose) mod exit;
pub(crate) mod fork;
pub(in crate::interpose) mod handler;
pub(in crate::interpose) mod inherit;
pub(crate) mod linker;
pub(in crate::interpose) mod lookups;
pub(in crate::interpose) mod os_thread;
pub(crate) mod quit;
pub(crate) mod signals;
pub(in crate::interpose) mod sigwait;
pub(in crate::interpose) mod stand_in;
pub(in crate::interpose) mod sysv;
pub(crate) mod urgent;
pub(in crate::interpose) mod wait;
