//! The settings of the runtime: where they come from, and when they can no longer change.
//!
//! [`Config::apply`] puts a program's settings into [`STORE`]. The start of the runtime takes them
//! out with [`resolve`]: the environment's settings override them, and they override the defaults.
//! From then on the store is frozen, and an `apply` fails.

#[cfg(feature = "dump")]
use pirn_observe::diagnostics;
use pirn_rt::environment;
use pirn_rt::lock::Lock;
use pirn_rt::stack::{LARGEST_STACK, SMALLEST_STACK};
use spec::{
    KIB, MAX_BLOCKING_THREADS, MIB, OBSERVE, PARALLELISM, SETTINGS, SIGQUIT, SLICE, SPARE_CARRIERS,
    SPECS, SPIN, STACK_SIZE, TLS_RESERVE,
};
use std::ffi::OsString;
use std::time::Duration;

mod spec;
pub(crate) mod unknown;

#[cfg(feature = "dump")]
pub(crate) use spec::parse_size;

/// Settings for the runtime, which starts by itself with the first virtual thread.
///
/// # Examples
///
/// ```standalone_crate
/// fn main() -> Result<(), pirn::ConfigError> {
///     pirn::Config::new().parallelism(2).stack_size(64 * 1024).apply()
/// }
/// ```
///
/// # Settings
///
/// | setter | variable | unit | least | most | default |
/// |---|---|---|---|---|---|
/// | [`parallelism`](Self::parallelism) | `PIRN_PARALLELISM` | carriers | 1 | 1024 | the machine's, from [`std::thread::available_parallelism`] |
/// | [`stack_size`](Self::stack_size) | `PIRN_STACK_SIZE` | bytes; the variable takes `K`, `M`, `G` (or `KiB`, …) too, and a range, `256K..2M` | 16 KiB | 1 GiB | `256K..2M`: 2 MiB for the first 4,096 threads, 256 KiB for those beyond; 2 MiB with debug assertions |
/// | [`max_blocking_threads`](Self::max_blocking_threads) | `PIRN_MAX_BLOCKING_THREADS` | platform threads | 1 | 65536 | 256 |
/// | [`spare_carriers`](Self::spare_carriers) | `PIRN_SPARE_CARRIERS` | carriers | 0 | 1024 | 16 |
/// | [`spin`](Self::spin) | `PIRN_SPIN_US` | microseconds | 0 | 10000 | 20 |
/// | [`tls_reserve`](Self::tls_reserve) | `PIRN_TLS_RESERVE` | bytes; the variable takes `K` (or `KiB`) too | 64 | 8 KiB | 320; 8 KiB where `pthread_create` makes virtual threads |
/// | [`time_slice`](Self::time_slice) | `PIRN_PREEMPT` | milliseconds; `us` after the number: microseconds; 0: threads are not preempted | 0 | 1000 | 10 |
/// | [`observe`](Self::observe) | `PIRN_OBSERVE` | 0: never; 1: from the start | 0 | 1 | when a tool asks |
/// | [`dump_on_sigquit`](Self::dump_on_sigquit) | `PIRN_SIGQUIT` | `on` or `off` | | | on |
///
/// **The environment takes precedence:** a variable overrides the program's setting, which
/// overrides the default. The program's author knows the program, but its operator knows the
/// machine and must be able to correct a setting without a compiler. A variable with a bad value,
/// including an empty one, is not ignored: the runtime does not start, and the error names the
/// variable.
#[derive(Clone, Debug, Default)]
#[must_use = "settings take effect with `.apply()`"]
pub struct Config {
    values: Values,
}

impl Config {
    /// Returns a configuration that sets nothing yet; it takes effect when it is
    /// [applied](Config::apply).
    pub fn new() -> Config {
        Config::default()
    }

    /// Sets the number of carriers, which is the number of virtual threads that run at the same
    /// moment.
    pub fn parallelism(self, carriers: usize) -> Self {
        self.with(PARALLELISM, carriers)
    }

    /// Sets the size in bytes of a virtual thread's stack, rounded up to whole pages. It applies to
    /// the threads whose `Builder` sets none.
    ///
    /// This is address space: memory is used for the part of a stack that was ever touched, and for
    /// page tables, about a 512th of the size.
    ///
    /// By default the first 4,096 threads alive have the 2 MiB of `std`, and those beyond have 256
    /// KiB. If this crate is compiled with debug assertions, as in the `dev` profile, all have 2
    /// MiB: unoptimised code takes several times as much stack. `RUST_MIN_STACK` replaces the
    /// default, as in `std`.
    pub fn stack_size(self, bytes: usize) -> Self {
        self.with(STACK_SIZE, bytes)
    }

    /// Sets the maximum number of platform threads that make blocking calls (file I/O, name
    /// lookups) for virtual threads at the same time. Further calls queue.
    pub fn max_blocking_threads(self, threads: usize) -> Self {
        self.with(MAX_BLOCKING_THREADS, threads)
    }

    /// Sets how many extra carriers may run while all of [`parallelism`](Self::parallelism)
    /// are stuck: computing for some milliseconds without waiting, or blocked in a system call. The
    /// operating system then shares the cores between them, so that computing threads do not keep
    /// the others from running. Extra carriers rest as soon as the regular ones are no longer
    /// stuck.
    ///
    /// With 0, never more than `parallelism` threads run at the same moment.
    pub fn spare_carriers(self, carriers: usize) -> Self {
        self.with(SPARE_CARRIERS, carriers)
    }

    /// Sets for how many microseconds an idle carrier looks for work before it sleeps. A longer
    /// time makes hand-overs between carriers quicker and uses more CPU; 0 sleeps at once.
    pub fn spin(self, microseconds: usize) -> Self {
        self.with(SPIN, microseconds)
    }

    /// Sets how many bytes of each virtual thread are kept for the thread-local data of libraries
    /// that are opened with `dlopen` later on. A library takes 16 bytes if its data are allocated
    /// when a thread first uses them, as most libraries are. It also takes the size of its data if
    /// it uses the initial-exec model. If there is no room for a library, `dlopen` fails and says
    /// how much is needed. Libraries that the program is linked with take nothing.
    ///
    /// These bytes are part of the one page that a parked thread usually takes.
    pub fn tls_reserve(self, bytes: usize) -> Self {
        self.with(TLS_RESERVE, bytes)
    }

    /// Sets how long a thread may compute while other threads wait for its carrier. Then it is
    /// preempted: put aside, in the middle of its code, until it is its turn again. For something
    /// urgent (a timer that is due, a descriptor that is ready) it is preempted at once.
    ///
    /// With zero, no thread is preempted; [spare carriers](Self::spare_carriers) help instead. A
    /// slice is rounded down to microseconds; more than a second is too long.
    ///
    /// [`thread::no_preemption`](crate::thread::no_preemption) excepts a part of the program.
    pub fn time_slice(self, slice: Duration) -> Self {
        let micros = usize::try_from(slice.as_micros()).unwrap_or(usize::MAX);
        self.with(SLICE, micros)
    }

    /// Sets whether tools may look inside the process: `pirn dump`, `pirn top` and the like.
    ///
    /// Unless set, the process answers once such a tool asks, by a signal (`SIGURG`) that only the
    /// same user and root can send. With `true` it listens from the start, so that tools need not
    /// ask; with `false` it never does. It listens on a Unix socket in a private folder, and
    /// answers the same user and root only; a program with privileges that its user lacks (setuid)
    /// never listens.
    pub fn observe(self, allowed: bool) -> Self {
        self.with(OBSERVE, usize::from(allowed))
    }

    /// Sets whether `SIGQUIT` (Ctrl-\\ on a terminal) makes the process write a dump of its
    /// virtual threads to standard error and go on. A second one within two seconds ends the
    /// process, as the first would with `false`.
    ///
    /// A process that ignores the signal, or has a handler of its own, is left alone either way.
    pub fn dump_on_sigquit(self, dumps: bool) -> Self {
        self.with(SIGQUIT, usize::from(dumps))
    }

    /// Passes the settings to the runtime, which uses them when it starts.
    ///
    /// Call it once, before the first virtual thread. Under `#[pirn::main]` there is a virtual
    /// thread before `main`'s first line, so this is for programs with a plain `main`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::AlreadyStarted`] after the start of the runtime,
    /// [`ConfigError::AlreadyApplied`] after another successful `apply`, and
    /// [`ConfigError::BadValue`] for a setting outside its bounds. On an error no setting changes.
    ///
    /// # Examples
    ///
    /// ```standalone_crate
    /// use pirn::{Config, ConfigError};
    ///
    /// let error = Config::new().parallelism(0).apply().unwrap_err();
    /// assert_eq!(error.to_string(), "bad value for parallelism: 0 (accepted: 1 to 1024 carriers)");
    ///
    /// assert_eq!(Config::new().parallelism(2).apply(), Ok(()));
    /// assert_eq!(Config::new().apply(), Err(ConfigError::AlreadyApplied));
    /// ```
    pub fn apply(self) -> Result<(), ConfigError> {
        STORE.apply(&self)
    }

    fn with(mut self, setting: usize, value: usize) -> Self {
        self.values[setting] = Some(value);
        self
    }
}

/// The settings of a running runtime, each within its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The number of carriers.
    pub(crate) parallelism: usize,
    /// The size in bytes that each stack has.
    pub(crate) stack_size: usize,
    /// The size in bytes of stacks while threads are few; not less.
    pub(crate) large_stack_size: usize,
    /// The maximum number of platform threads for blocking calls.
    pub(crate) max_blocking_threads: usize,
    /// The maximum number of extra carriers.
    pub(crate) spare_carriers: usize,
    /// How long an idle carrier looks for work.
    pub(crate) spin: Duration,
    /// Bytes of each thread for the thread-local data of libraries to come, if they are set.
    pub(crate) tls_reserve: Option<usize>,
    /// How long a thread may compute while others wait; zero: for ever.
    pub(crate) slice: Duration,
    /// What the reporter writes to standard error.
    #[cfg(feature = "dump")]
    pub(crate) diagnostics: diagnostics::Settings,
    /// Whether tools may look inside; unless set, when they ask.
    pub(crate) observe: Option<bool>,
    /// Whether `SIGQUIT` writes a dump.
    pub(crate) sigquit: bool,
}

/// Determines the settings, for the start of the runtime. From here on `apply` fails.
///
/// A later call returns the same settings, as long as the environment is the same. Call it on a
/// platform thread outside all runtime sections: it uses `std` to read the environment and, for the
/// default parallelism, the files of the control group.
///
/// # Errors
///
/// [`ConfigError::BadValue`] for a variable. The store is not frozen then, since nothing starts.
pub(crate) fn resolve() -> Result<Settings, ConfigError> {
    STORE.resolve(environment::variable)
}

/// Returns the variables that [`resolve`] reads.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    let numbers = SPECS.iter().map(|spec| spec.variable);
    #[cfg(feature = "dump")]
    let numbers = numbers.chain(diagnostics::VARIABLES);
    numbers
}

static STORE: Store = Store::new();

type Values = [Option<usize>; SETTINGS];

/// The program's settings. The lock is the runtime's: `std`'s may not be used inside the runtime.
struct Store(Lock<Stored>);

struct Stored {
    /// What the program has applied.
    values: Option<Values>,
    is_frozen: bool,
}

impl Store {
    const fn new() -> Store {
        Store(Lock::new(Stored {
            values: None,
            is_frozen: false,
        }))
    }

    fn apply(&self, configuration: &Config) -> Result<(), ConfigError> {
        for (spec, value) in SPECS.iter().zip(configuration.values) {
            if let Some(value) = value {
                spec.check(value)?;
            }
        }
        let mut stored = self.0.lock();
        match stored.values {
            _ if stored.is_frozen => Err(ConfigError::AlreadyStarted),
            Some(_) => Err(ConfigError::AlreadyApplied),
            None => {
                stored.values = Some(configuration.values);
                Ok(())
            }
        }
    }

    /// Freezes the store, and returns the program's settings.
    fn freeze(&self) -> Values {
        let mut stored = self.0.lock();
        stored.is_frozen = true;
        stored.values.unwrap_or_default()
    }

    fn resolve(
        &self,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Settings, ConfigError> {
        let mut environment = [None; SETTINGS];
        for (spec, value) in SPECS.iter().zip(&mut environment) {
            *value = variable(spec.variable)
                .map(|text| spec.parse(text))
                .transpose()?;
        }
        #[cfg(feature = "dump")]
        let diagnostics = diagnostics::Settings::resolve(&variable)?;
        let program = self.freeze();
        let value = |i: usize| environment[i].map(|range| range.0).or(program[i]);
        let both = |size| (size, size);
        let stack_sizes = environment[STACK_SIZE]
            .or_else(|| program[STACK_SIZE].map(both))
            .or_else(|| std_stack_size(variable("RUST_MIN_STACK")).map(both))
            .unwrap_or(DEFAULT_STACK);
        Ok(Settings {
            parallelism: value(PARALLELISM).unwrap_or_else(machine_parallelism),
            stack_size: stack_sizes.0,
            large_stack_size: stack_sizes.1,
            max_blocking_threads: value(MAX_BLOCKING_THREADS).unwrap_or(256),
            spare_carriers: value(SPARE_CARRIERS).unwrap_or(16),
            spin: Duration::from_micros(value(SPIN).unwrap_or(20) as u64),
            tls_reserve: value(TLS_RESERVE),
            slice: Duration::from_micros(value(SLICE).unwrap_or(DEFAULT_SLICE_US) as u64),
            #[cfg(feature = "dump")]
            diagnostics,
            observe: value(OBSERVE).map(|allowed| allowed != 0),
            sigquit: value(SIGQUIT) != Some(0),
        })
    }
}

fn machine_parallelism() -> usize {
    let machine = std::thread::available_parallelism().map_or(1, |n| n.get());
    machine.min(SPECS[PARALLELISM].most)
}

/// The default time slice in microseconds. A longer one makes threads that compute wait for each
/// other; with a shorter one, a thread that spawns many would lose its turn.
const DEFAULT_SLICE_US: usize = 10_000;
/// The default sizes of a stack in bytes: what each has, and what the first few thousand have.
///
/// Crates are written for the 2 MiB of `std`, and unoptimised code needs them. Optimised code
/// hardly ever does, and a larger stack costs a page table for each parked thread.
const DEFAULT_STACK: (usize, usize) = if cfg!(debug_assertions) {
    (2 * MIB, 2 * MIB)
} else {
    (256 * KIB, 2 * MIB)
};

/// Returns the stack size that `std` takes from `RUST_MIN_STACK`, within the bounds.
fn std_stack_size(variable: Option<OsString>) -> Option<usize> {
    let bytes: usize = variable?.to_str()?.parse().ok()?;
    Some(bytes.clamp(SMALLEST_STACK, LARGEST_STACK))
}

/// Why a [`Config`](super::Config) was not applied, or why the runtime did not start.
///
/// # Examples
///
/// ```standalone_crate
/// use pirn::ConfigError;
///
/// let error = pirn::Config::new().stack_size(100).apply().unwrap_err();
/// assert!(matches!(error, ConfigError::BadValue { name: "stack_size", .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The runtime has started, with other settings.
    AlreadyStarted,
    /// Another configuration was applied before this one.
    AlreadyApplied,
    /// A value is malformed or out of bounds.
    #[non_exhaustive]
    BadValue {
        /// The setting (`"stack_size"`) or the environment variable (`"PIRN_STACK_SIZE"`).
        name: &'static str,
        /// The value as it was given.
        value: String,
        /// The accepted values.
        accepted: &'static str,
    },
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConfigError::AlreadyStarted => f.write_str(
                "the runtime has already started; apply a configuration before the first virtual \
                 thread (under #[pirn::main], use the PIRN_ variables)",
            ),
            ConfigError::AlreadyApplied => {
                f.write_str("a configuration was already applied; put all settings into one")
            }
            ConfigError::BadValue {
                name,
                value,
                accepted,
            } => {
                write!(f, "bad value for {name}: {value} (accepted: {accepted})")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests;
