//! Starting the runtime and all that belongs to it: once, at the first spawn, and in the child of a
//! fork again.
//!
//! The start examines machine, kernel and C library, and refuses with one clear error if they do
//! not meet the requirements.

use crate::{config, observe, scope, thread};
use pirn_rt::glibc::tls;
use pirn_rt::lock::Lock;
use pirn_rt::process::{self, FAILURE, STARTING};
use pirn_rt::sched::runtime::{self, Runtime, RuntimeSettings};
use pirn_rt::sched::simulation::Simulator;
use pirn_rt::stack::{SizeClass, region};
use pirn_rt::sys::{self, call};
use pirn_rt::vthread::helper::ForcePlatform;
use pirn_rt::vthread::overflow;
use pirn_rt::{arch, carriers, environment, sanitizer};
use std::io;
use std::time::Duration;

/// Pretends that the thread pointer cannot be set by an instruction.
const NO_FSGSBASE: &str = "PIRN_NO_FSGSBASE";

/// Starts the process's runtime: what [`runtime::ensure_started`] calls.
#[cold]
#[unsafe(no_mangle)]
fn pirn_start_runtime() -> io::Result<&'static Runtime> {
    if runtime::has_forked() && !pirn_libc::posix::is_on() {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "pirn: no virtual threads here: this process was forked from one that has them (spawn before the fork, or exec)",
        ));
    }
    let _guard = STARTING.lock();
    // The threads that are made from here on are the runtime's own.
    let _forced = ForcePlatform::helpers();
    if let Some(runtime) = runtime::get() {
        return Ok(runtime);
    }
    if !has_room() {
        return Err(io::ErrorKind::OutOfMemory.into()); // Not final: there may be memory later.
    }
    if runtime::has_forked() {
        return FAILURE.with(restart);
    }
    if !has_fsgsbase() {
        arch::switch_slowly_from_now_on();
    }
    let settings = settings().map_err(io::Error::other)?;
    let keep = observe::events_to_keep().map_err(io::Error::other)?;
    environment::prepare_notices();
    config::unknown::report();
    pirn_libc::verify().map_err(process::unsupported)?;
    let reserve = settings.tls_reserve.unwrap_or_else(default_tls_reserve);
    process::study(reserve)?;
    // The following steps cannot be undone, so a failure is final.
    FAILURE.with(|| launch(&settings, keep))
}

/// Memory that must be there for a start: it allocates in many places, and without memory
/// the program ends there.
const ROOM: usize = 16 << 20;

/// Returns whether there is memory for a start. Not by the allocator: glibc's takes a large block
/// that is given back for a sign that such blocks come often.
fn has_room() -> bool {
    let Ok(address) = sys::map(ROOM, 0) else {
        return false;
    };
    // SAFETY: just mapped; no other code has the address.
    let _ = unsafe { call!(libc::SYS_munmap, address, ROOM) };
    true
}

/// Returns the room for the thread-local data of libraries to come.
///
/// A program that was written for Pirn opens few. Other programs must work as they do natively:
/// Python with scipy opens 220, and 28 of these have such data. Room for 500 costs a thread a
/// second page, since its stack is in another one.
fn default_tls_reserve() -> usize {
    match pirn_libc::posix::is_on() {
        false => tls::RESERVE,
        true => 8 << 10,
    }
}

/// Returns whether an instruction can set the thread pointer. Valgrind does not know it.
///
/// `PIRN_NO_FSGSBASE` in the environment pretends that the processor has none, for tests.
fn has_fsgsbase() -> bool {
    let hidden = environment::variable(NO_FSGSBASE).is_some();
    arch::has_tp_instruction() && !arch::on_valgrind() && !hidden
}

/// Sets up the process's state and its runtime.
fn launch(settings: &config::Settings, keep: observe::Keep) -> io::Result<&'static Runtime> {
    if !arch::has_tp_instruction() && !arch::on_valgrind() {
        environment::notice(
            "this processor or kernel has no FSGSBASE, so each switch between virtual threads \
             makes a system call (needs Linux 5.9 without `nofsgsbase`, and Intel Ivy Bridge or \
             AMD Steamroller or later)",
        );
    }
    observe::install();
    sanitizer::find_out();
    overflow::install(pirn_libc::posix::is_on());
    region::find_out();
    let observable = observe::allow(settings.observe);
    let slice_ns = match pirn_libc::signals::urgent::install(settings.slice, observable) {
        Ok(()) => settings.slice.as_nanos() as u64,
        Err(_) => 0, // Spare carriers do what preemption would have done.
    };
    let runtime = make(settings, slice_ns)?;
    process::check_stacks_at_exit();
    observe::keep_events(runtime, keep)?;
    run(runtime, settings)?;
    pirn_libc::process::fork::install(after_fork).map_err(process::unsupported)?;
    pirn_libc::process::linker::install().map_err(process::unsupported)?;
    thread::names::name_in_panics();
    pirn_libc::started();
    runtime::publish(runtime);
    pirn_libc::signals::default::install();
    observe::serve(settings, pirn_libc::signals::default::install_dump);
    Ok(runtime)
}

/// Forgets, in the child of a fork, what its threads might wait for: locks that threads of the
/// parent hold.
fn after_fork() {
    scope::tree::after_fork();
    thread::interrupt::after_fork();
}

/// Makes another runtime in the child of a fork, for its first thread; most children run another
/// program and never get here. What the parent has studied and installed for the process is there.
/// Events are recorded if a tool asks for them: the parent writes its own file.
///
/// The thread that forked stays a platform thread, also if it was a virtual one. Its stack is in a
/// slot of the old runtime; so the addresses of all old slots stay reserved, and none is used
/// again.
fn restart() -> io::Result<&'static Runtime> {
    let settings = settings().map_err(io::Error::other)?;
    // SAFETY: there is no runtime; the caller has the lock.
    unsafe {
        process::renew();
        pirn_libc::after_fork();
        observe::after_fork();
    }
    runtime::has_begun_anew();
    observe::allow(settings.observe);
    let slice_ns = match pirn_libc::signals::urgent::is_installed() {
        true => settings.slice.as_nanos() as u64,
        false => 0,
    };
    let runtime = make(&settings, slice_ns)?;
    run(runtime, &settings)?;
    pirn_libc::started();
    runtime::publish(runtime);
    observe::serve(&settings, pirn_libc::signals::default::after_fork);
    Ok(runtime)
}

/// Makes the runtime, which does not run yet.
fn make(settings: &config::Settings, slice_ns: u64) -> io::Result<&'static Runtime> {
    let extra = sanitizer::extra_stack(tls::template().image_bytes());
    let [small, large] = [settings.stack_size, settings.large_stack_size].map(|size| size + extra);
    Runtime::new(RuntimeSettings {
        parallelism: settings.parallelism,
        spares: settings.spare_carriers,
        default_class: SizeClass::set_default(small, large),
        spin_ns: settings.spin.as_nanos() as u64,
        max_blocking_threads: settings.max_blocking_threads,
        slice_ns,
        simulator: *SIMULATOR.lock(),
    })
}

/// What decides in the scheduler's place, if the runtime is to be simulated.
static SIMULATOR: Lock<Option<&'static dyn Simulator>> = Lock::new(None);

/// Lets `simulator` decide in the scheduler's place.
///
/// # Errors
/// The runtime has started without it, or cannot start.
pub fn simulate(simulator: &'static dyn Simulator) -> io::Result<()> {
    *SIMULATOR.lock() = Some(simulator);
    match runtime::ensure_started()?.settings.simulator {
        Some(_) => Ok(()),
        None => Err(io::Error::other(
            "pirn: this process has virtual threads that are not simulated: begin the simulation \
             before the first spawn",
        )),
    }
}

/// Returns the settings, less what would let a simulation depend on the machine.
fn settings() -> Result<config::Settings, config::ConfigError> {
    let mut settings = config::resolve()?;
    if SIMULATOR.lock().is_some() {
        (settings.parallelism, settings.spare_carriers) = (1, 0);
        settings.slice = Duration::ZERO;
    }
    Ok(settings)
}

/// Starts the runtime's carriers, and the platform threads beside them.
fn run(runtime: &'static Runtime, settings: &config::Settings) -> io::Result<()> {
    carriers::start(runtime)?;
    if runtime.settings.simulator.is_none() {
        observe::start(runtime, settings);
    }
    Ok(())
}
