//! Runtimes and threads for unit tests.

use crate::glibc::tls;
use crate::process;
#[cfg(test)]
use crate::sched::Acquired;
use crate::sched::ClosureBody;
use crate::sched::runtime::{self, Runtime, RuntimeSettings, ensure_started};
use crate::stack::SizeClass;
use crate::vthread::record::Attributes;
use crate::vthread::{Ready, ThreadRef};

/// Returns settings with as little of everything as a runtime can have. Of such large stacks it
/// makes 128 at a time: without guard markers each takes 2 mappings, which no runtime gives back.
pub fn few(parallelism: usize) -> RuntimeSettings {
    RuntimeSettings {
        parallelism,
        spares: 0,
        default_class: SizeClass::for_bytes(2 << 20),
        spin_ns: 0,
        max_blocking_threads: 1,
        simulator: None,
        slice_ns: 0,
    }
}

/// Makes a runtime without carriers, whose processors so seem to be held.
pub fn make_with(settings: RuntimeSettings) -> &'static Runtime {
    ensure_started().unwrap(); // Sets up the process's state.
    Runtime::new(settings).unwrap()
}

/// Makes a thread that is ready to run: a reference to it, and the right to run it.
#[track_caller]
pub fn ready<T: Send>(
    runtime: &'static Runtime,
    f: impl FnOnce() -> T + Send + 'static,
) -> (ThreadRef, Ready) {
    let class = runtime.settings.default_class;
    runtime.stacks.reserve(class, 1).unwrap();
    let attributes = Attributes {
        home: runtime.home(),
        name: None,
        class,
        scheduler: None,
        place: core::panic::Location::caller(),
    };
    ClosureBody::allocate(attributes, f).unwrap()
}

/// Holds the first processor of a runtime without carriers.
#[cfg(test)]
pub(crate) fn hold(runtime: &'static Runtime) -> Acquired {
    // SAFETY: there is no carrier, and the tests call this once at a time.
    unsafe { Acquired::new(&runtime.processors.used()[0]) }
}

#[cfg(test)]
#[unsafe(no_mangle)]
fn pirn_start_runtime() -> std::io::Result<&'static Runtime> {
    start()
}

/// Starts a runtime with as little as this crate has: no interposition, no settings, no carriers.
pub fn start() -> std::io::Result<&'static Runtime> {
    let _guard = process::STARTING.lock();
    if let Some(runtime) = runtime::get() {
        return Ok(runtime);
    }
    process::study(tls::RESERVE)?;
    crate::sanitizer::find_out();
    crate::stack::region::find_out();
    let runtime = Runtime::new(few(1))?;
    runtime::publish(runtime);
    Ok(runtime)
}
