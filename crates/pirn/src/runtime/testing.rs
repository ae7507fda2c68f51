//! Runtimes and threads for unit tests.

use super::{Runtime, RuntimeSettings, ensure_started};
use crate::sched;
use crate::stack::SizeClass;
use crate::thread::join::RawHandle;
use crate::vthread::record::Attributes;
use crate::vthread::{ClosureBody, Ready, ThreadRef};

/// Returns settings with as little of everything as a runtime can have.
pub(crate) fn few(parallelism: usize) -> RuntimeSettings {
    RuntimeSettings {
        parallelism,
        spares: 0,
        default_class: SizeClass::for_bytes(256 << 10),
        spin_ns: 0,
        max_blocking_threads: 1,
        slice_ns: 0,
    }
}

/// Makes a runtime without carriers, whose processors so seem to be held.
pub(crate) fn make_with(settings: RuntimeSettings) -> &'static Runtime {
    ensure_started().unwrap(); // Sets up the process's state.
    Runtime::new(settings).unwrap()
}

/// Makes a thread that is ready to run: a reference to it, and the right to run it.
#[track_caller]
pub(crate) fn ready<T: Send>(
    runtime: &'static Runtime,
    f: impl FnOnce() -> T + Send + 'static,
) -> (ThreadRef, Ready) {
    let class = runtime.settings.default_class;
    runtime.stacks.reserve(class, 1).unwrap();
    let attributes = Attributes {
        runtime,
        name: None,
        class,
        scheduler: None,
        place: core::panic::Location::caller(),
    };
    ClosureBody::allocate(attributes, f).unwrap()
}

/// Spawns a thread of a runtime.
#[track_caller]
pub(crate) fn spawn<T: Send>(
    runtime: &'static Runtime,
    f: impl FnOnce() -> T + Send + 'static,
) -> RawHandle<T> {
    let (thread, ready) = ready(runtime, f);
    sched::start(ready);
    RawHandle::new(thread)
}
