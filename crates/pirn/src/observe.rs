//! Looking into the process: `pirn-observe`, wired to this crate.

use crate::config::{self, ConfigError, Settings};
use crate::scope;
use crate::thread::annotate;
use pirn_libc::signals::urgent;
use pirn_observe::diagnostics;
use pirn_observe::events::{self as recorded, from_environment};
use pirn_observe::{Hooks, Scope, StopSignal, debug_table, server};
use pirn_rt::sched::runtime::Runtime;
use std::io;

pub(crate) use pirn_observe::{after_fork, server::allow};

/// Dumps of all virtual threads, made by the program itself.
///
/// [`dump::take`] is all that most programs need. [`Options`](dump::Options) ask for more than
/// groups.
///
/// # Examples
/// ```
/// use pirn::{dump, thread};
///
/// let waits = thread::spawn(thread::park);
/// println!("{}", pirn::dump::take());
/// let dump = dump::Options::new().list(100).take();
/// let mut file = Vec::new();
/// dump.write_to(&mut file)?;
/// # waits.thread().unpark();
/// # waits.join().unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
pub mod dump {
    #[doc(inline)]
    pub use pirn_observe::dump::{Options, ThreadDump, ThreadStack, take};
}

/// What the threads did lately.
///
/// A recorder keeps the last events of each carrier, in memory of a fixed size: which thread ran
/// when, for what it waited, which one woke it, when scopes were opened and closed. It costs
/// little, and may be on all the time. When something goes wrong, it has what came before.
///
/// * `pirn events PID` records a running process for some seconds, and writes a trace for
///   [Perfetto](https://ui.perfetto.dev). The process need not have prepared anything.
/// * A [`Recorder`](events::Recorder) keeps the last events all the time, and writes a file when a
///   rule says so; `pirn events FILE` makes a trace of it. `PIRN_EVENTS` starts one from outside.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
///
/// pirn::events::Recorder::new()
///     .stuck(Duration::from_millis(100)) // a thread that keeps its carrier this long
///     .latency(Duration::from_millis(50)) // a runnable thread that does not run for this long
///     .panics(true)
///     .start()?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A page of a server could record for a moment:
///
/// ```
/// # use std::time::Duration;
/// pirn::thread::spawn(|| ()).join().unwrap();
/// let mut events = Vec::new();
/// pirn::events::record(Duration::from_millis(10), &mut events)?;
/// assert!(events.starts_with(b"PIRNEVTS"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub mod events {
    #[doc(inline)]
    pub use pirn_observe::events::{Recorder, record, write};
}

/// What the runtime has counted, and how much there is of everything.
///
/// [`snapshot`](metrics::snapshot) takes a snapshot, [`Metrics`](metrics::Metrics). Its text
/// for Prometheus makes a server's page; the [example][server] is such a server.
///
/// [server]: https://docs.rs/crate/pirn/latest/source/examples/metrics_server.rs
///
/// # Examples
/// ```
/// let before = pirn::metrics::snapshot();
/// pirn::thread::spawn(|| ()).join().unwrap();
/// let after = pirn::metrics::snapshot();
/// assert!(after["started"] > before["started"]);
/// println!("{} threads wait, of {}", after["threads.waiting"], after.sum("threads"));
/// for (name, part, number) in after.iter() {
///     println!("{name} {part}: {number}");
/// }
/// println!("{}", after.to_prometheus());
/// ```
pub mod metrics {
    #[doc(inline)]
    pub use pirn_observe::metrics::{Carrier, CarrierState, Latency, Metrics, snapshot};
}

/// The events to keep from the start on, if `PIRN_EVENTS` says so.
pub(crate) type Keep = Option<recorded::Recorder>;

/// Reads `PIRN_EVENTS`.
pub(crate) fn events_to_keep() -> Result<Keep, ConfigError> {
    Ok(from_environment(config::parse_size)?)
}

impl From<pirn_observe::BadValue> for ConfigError {
    fn from(bad: pirn_observe::BadValue) -> ConfigError {
        ConfigError::BadValue {
            name: bad.name,
            value: format!("{:?}", bad.value),
            accepted: bad.accepted,
        }
    }
}

/// Tells the crate below what it shows of this one, and makes the linker keep its table.
pub(crate) fn install() {
    debug_table::keep();
    let hooks = Hooks {
        scopes,
        open_scopes: scope::count,
        annotations: annotate::innermost,
        interposed: pirn_libc::addresses,
        lock_owner: pirn_libc::owner_of,
        stop_signal: || StopSignal {
            works: urgent::is_active(),
            restarts: urgent::restarts(),
        },
    };
    hooks.install();
}

fn scopes() -> Vec<Scope> {
    let outlines = scope::outlines().into_iter();
    let scopes = outlines.map(|(scope, members)| Scope {
        id: scope.id.number(),
        name: scope.name.as_deref().map(str::to_owned),
        parent: scope.parent.map(scope::ScopeId::number),
        owner: Some(scope.owner.id().number()),
        cancelled: scope.cancelled,
        members: members as u64,
    });
    scopes.collect()
}

/// Keeps events from the start on.
pub(crate) fn keep_events(runtime: &'static Runtime, keep: Keep) -> io::Result<()> {
    keep.map_or(Ok(()), |keep| recorded::start_by_environment(runtime, keep))
}

/// Starts the diagnostics of a runtime that runs.
pub(crate) fn start(runtime: &'static Runtime, settings: &Settings) {
    diagnostics::start(runtime, settings.diagnostics);
}

/// Listens for tools from the start on, and handles `SIGQUIT`, as the settings say.
pub(crate) fn serve(settings: &Settings, quit: fn()) {
    if settings.sigquit {
        quit();
    }
    if settings.observe == Some(true) {
        server::open_for_good();
    }
}
