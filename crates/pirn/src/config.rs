//! The settings of the runtime: where they come from, and when they can no longer change.
//!
//! [`Config::apply`] puts a program's settings into [`STORE`]; the start of the runtime
//! takes them out with [`resolve`], over them the environment's, under them the defaults. The
//! store has no lock, since `std`'s may not be used inside the runtime, and nobody ever waits:
//! when the runtime starts in the middle of an `apply`, the start wins and the `apply` fails.
//!
//! ```text
//! state      set by               next
//! EMPTY      (initially)          WRITING: apply begins;       FROZEN: resolve
//! WRITING    apply, one thread    SET: apply has written all;  FROZEN: resolve, apply then fails
//! SET        the same apply       SET | FROZEN: resolve
//! FROZEN     resolve              none: the runtime runs on the environment and the defaults
//! SET|FROZEN resolve              none: the runtime runs on the program's settings as well
//! ```

use crate::stack::{LARGEST_STACK, SMALLEST_STACK};
use std::ffi::OsString;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

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
/// | [`parallelism`](Self::parallelism) | `PIRN_PARALLELISM` | carriers | 1 | 1024 | the machine's, as [`std::thread::available_parallelism`] tells |
/// | [`stack_size`](Self::stack_size) | `PIRN_STACK_SIZE` | bytes; the variable takes `K`, `M`, `G` (or `KiB`, …) too | 16 KiB | 1 GiB | 256 KiB; 2 MiB, as in `std`, with debug assertions |
/// | [`max_blocking_threads`](Self::max_blocking_threads) | `PIRN_MAX_BLOCKING_THREADS` | platform threads | 1 | 65536 | 256 |
/// | [`spare_carriers`](Self::spare_carriers) | `PIRN_SPARE_CARRIERS` | carriers | 0 | 1024 | 16 |
/// | [`spin`](Self::spin) | `PIRN_SPIN_US` | microseconds | 0 | 10000 | 20 |
///
/// **The environment has the last word:** a variable beats the program's setting, which beats the
/// default. The program's author knows the program; its operator knows the machine it runs on
/// today and must be able to correct the author without a compiler. A variable with a bad value,
/// an empty one included, is not passed over: the runtime does not start, and says which it is.
#[derive(Clone, Debug, Default)]
#[must_use = "settings take effect with `.apply()`"]
pub struct Config {
    values: [Option<usize>; SETTINGS],
}

impl Config {
    /// Returns a configuration that sets nothing yet; it takes effect when it is
    /// [applied](Config::apply).
    ///
    /// # Examples
    ///
    /// ```standalone_crate
    /// assert_eq!(pirn::Config::new().apply(), Ok(())); // all settings stay as they are
    /// ```
    pub fn new() -> Config {
        Config::default()
    }

    /// Sets the number of carriers: how many virtual threads run at the same moment.
    ///
    /// # Examples
    ///
    /// ```standalone_crate
    /// # fn main() -> Result<(), pirn::ConfigError> {
    /// pirn::Config::new().parallelism(1).apply()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn parallelism(self, carriers: usize) -> Self {
        self.with(PARALLELISM, carriers)
    }

    /// Sets the size in bytes of a virtual thread's stack, rounded up to a power of two. It holds
    /// for the threads whose `Builder` sets none.
    ///
    /// It is address space: memory is used for the part of a stack that was ever touched, and
    /// for page tables, about a 512th of the size.
    ///
    /// The default is 256 KiB. Where this crate is compiled with debug assertions, as in the `dev`
    /// profile, it is the 2 MiB of `std`: unoptimised code takes several times as much stack.
    ///
    /// # Examples
    ///
    /// ```standalone_crate
    /// # fn main() -> Result<(), pirn::ConfigError> {
    /// pirn::Config::new().stack_size(1024 * 1024).apply()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn stack_size(self, bytes: usize) -> Self {
        self.with(STACK_SIZE, bytes)
    }

    /// Sets the most platform threads that stand in, at one moment, for virtual threads in calls
    /// that the kernel cannot do without blocking, such as those on files. Further calls queue.
    ///
    /// # Examples
    ///
    /// ```standalone_crate
    /// # fn main() -> Result<(), pirn::ConfigError> {
    /// pirn::Config::new().max_blocking_threads(16).apply()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_blocking_threads(self, threads: usize) -> Self {
        self.with(MAX_BLOCKING_THREADS, threads)
    }

    /// Sets how many carriers may be started beside those of [`parallelism`](Self::parallelism)
    /// while every one of these is stuck: in a thread that has computed for some milliseconds
    /// without ever waiting, or in a call that the kernel does not return from. The operating
    /// system then shares the cores between them, so that threads which compute do not keep the
    /// others from running. Spare carriers go to rest as soon as the others are not stuck any more.
    ///
    /// With 0 no more threads than `parallelism` says ever run at the same moment, whatever they
    /// do.
    ///
    /// # Examples
    ///
    /// ```standalone_crate
    /// # fn main() -> Result<(), pirn::ConfigError> {
    /// pirn::Config::new().parallelism(1).spare_carriers(0).apply()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn spare_carriers(self, carriers: usize) -> Self {
        self.with(SPARE_CARRIERS, carriers)
    }

    /// Sets for how many microseconds an idle carrier looks for work before it sleeps. Longer
    /// makes hand-overs between carriers quicker and burns more CPU; 0 sleeps at once.
    ///
    /// # Examples
    ///
    /// ```standalone_crate
    /// # fn main() -> Result<(), pirn::ConfigError> {
    /// pirn::Config::new().spin(0).apply()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn spin(self, microseconds: usize) -> Self {
        self.with(SPIN, microseconds)
    }

    /// Hands the settings to the runtime, which takes them up when it starts.
    ///
    /// To be called once, before the first virtual thread. Under `#[pirn::main]` there is a
    /// virtual thread before `main`'s first line, so it is for programs with a plain `main`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::AlreadyStarted`] after the start of the runtime,
    /// [`ConfigError::AlreadyApplied`] after another successful `apply`, and
    /// [`ConfigError::BadValue`] for a setting outside its bounds. Nothing is set then.
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

/// Why a [`Config`] was not applied, or why the runtime did not start.
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
        /// The setting (`"stack_size"`) or the environment's variable (`"PIRN_STACK_SIZE"`).
        name: &'static str,
        /// The value as it was given.
        value: String,
        /// What is accepted.
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

/// What the runtime runs on: every setting, within its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The number of carriers.
    pub(crate) parallelism: usize,
    /// Bytes of a stack, to be rounded up to a size class.
    pub(crate) stack_size: usize,
    /// The most platform threads for blocking calls.
    pub(crate) max_blocking_threads: usize,
    /// The most carriers beside those.
    pub(crate) spare_carriers: usize,
    /// How long an idle carrier looks for work.
    pub(crate) spin: Duration,
}

/// Settles the settings, for the start of the runtime. From here on `apply` fails.
///
/// A later call gives the same settings, as long as the environment is the same. For a platform
/// thread outside all runtime sections: reads the environment and, for the default parallelism,
/// the files of the control group, by `std`.
///
/// # Errors
///
/// [`ConfigError::BadValue`] for a variable. Nothing is frozen then, since nothing starts.
pub(crate) fn resolve() -> Result<Settings, ConfigError> {
    STORE.resolve(|variable| std::env::var_os(variable))
}

/// The variables that [`resolve`] reads.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    SPECS.iter().map(|spec| spec.variable)
}

static STORE: Store = Store::new();

const EMPTY: u8 = 0;
const WRITING: u8 = 1;
const SET: u8 = 2;
/// Added to one of the others.
const FROZEN: u8 = 4;

/// Stands for a setting that the program left alone; above all bounds.
const UNSET: usize = usize::MAX;

/// The program's settings. The state machine is at the top of this file.
struct Store {
    state: AtomicU8,
    values: [AtomicUsize; SETTINGS],
}

impl Store {
    const fn new() -> Store {
        Store {
            state: AtomicU8::new(EMPTY),
            values: [const { AtomicUsize::new(UNSET) }; SETTINGS],
        }
    }

    fn apply(&self, configuration: &Config) -> Result<(), ConfigError> {
        for (spec, value) in SPECS.iter().zip(configuration.values) {
            if let Some(value) = value {
                spec.check(value)?;
            }
        }
        self.move_state(EMPTY, WRITING)?;
        for (place, value) in self.values.iter().zip(configuration.values) {
            // Relaxed: published by the move to SET.
            place.store(value.unwrap_or(UNSET), Ordering::Relaxed);
        }
        self.move_state(WRITING, SET)
    }

    fn move_state(&self, from: u8, to: u8) -> Result<(), ConfigError> {
        let order = Ordering::SeqCst;
        match self.state.compare_exchange(from, to, order, order) {
            Ok(_) => Ok(()),
            Err(state) if state & FROZEN != 0 => Err(ConfigError::AlreadyStarted),
            Err(_) => Err(ConfigError::AlreadyApplied),
        }
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
        let applied = self.state.fetch_or(FROZEN, Ordering::SeqCst) & !FROZEN == SET;
        let value = |i: usize| environment[i].or_else(|| self.program(i, applied));
        let stack_size = value(STACK_SIZE).unwrap_or(DEFAULT_STACK);
        Ok(Settings {
            parallelism: value(PARALLELISM).unwrap_or_else(machine_parallelism),
            stack_size,
            max_blocking_threads: value(MAX_BLOCKING_THREADS).unwrap_or(256),
            spare_carriers: value(SPARE_CARRIERS).unwrap_or(16),
            spin: Duration::from_micros(value(SPIN).unwrap_or(20) as u64),
        })
    }

    /// What the program set, once the store is frozen.
    fn program(&self, i: usize, applied: bool) -> Option<usize> {
        // Relaxed: the read of SET in `resolve` comes after the writes. Without SET they may be
        // half done, and are not looked at.
        let value = self.values[i].load(Ordering::Relaxed);
        (applied && value != UNSET).then_some(value)
    }
}

fn machine_parallelism() -> usize {
    let machine = std::thread::available_parallelism().map_or(1, |n| n.get());
    machine.min(SPECS[PARALLELISM].most)
}

// The settings, as places in the arrays of this file.
const PARALLELISM: usize = 0;
const STACK_SIZE: usize = 1;
const MAX_BLOCKING_THREADS: usize = 2;
const SPARE_CARRIERS: usize = 3;
const SPIN: usize = 4;
const SETTINGS: usize = 5;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
const GIB: usize = 1024 * MIB;
/// Bytes of a stack where nobody says otherwise. Crates are written for the 2 MiB of `std`, and
/// unoptimised code needs them; optimised code hardly ever does, and a larger stack costs a page
/// table for each parked thread.
const DEFAULT_STACK: usize = if cfg!(debug_assertions) {
    2 * MIB
} else {
    256 * KIB
};

/// What is known of a setting before it has a value.
struct Spec {
    setting: &'static str,
    variable: &'static str,
    least: usize,
    most: usize,
    /// The bounds in words.
    accepted: &'static str,
    /// Whether its variable may use suffixes.
    is_size: bool,
}

const SPECS: [Spec; SETTINGS] = [
    Spec {
        setting: "parallelism",
        variable: "PIRN_PARALLELISM",
        least: 1,
        most: 1024,
        accepted: "1 to 1024 carriers",
        is_size: false,
    },
    Spec {
        setting: "stack_size",
        variable: "PIRN_STACK_SIZE",
        least: SMALLEST_STACK,
        most: LARGEST_STACK,
        accepted: "16 KiB to 1 GiB, in bytes; in the variable also with K, M or G (or KiB, MiB, GiB)",
        is_size: true,
    },
    Spec {
        setting: "max_blocking_threads",
        variable: "PIRN_MAX_BLOCKING_THREADS",
        least: 1,
        most: 65536,
        accepted: "1 to 65536 platform threads",
        is_size: false,
    },
    Spec {
        setting: "spare_carriers",
        variable: "PIRN_SPARE_CARRIERS",
        least: 0,
        most: 1024,
        accepted: "0 to 1024 carriers",
        is_size: false,
    },
    Spec {
        setting: "spin",
        variable: "PIRN_SPIN_US",
        least: 0,
        most: 10_000,
        accepted: "0 to 10000 microseconds",
        is_size: false,
    },
];

impl Spec {
    fn in_bounds(&self, value: usize) -> bool {
        (self.least..=self.most).contains(&value)
    }

    fn check(&self, value: usize) -> Result<(), ConfigError> {
        if self.in_bounds(value) {
            return Ok(());
        }
        let (name, accepted) = (self.setting, self.accepted);
        Err(ConfigError::BadValue {
            name,
            value: value.to_string(),
            accepted,
        })
    }

    /// The value of the variable.
    fn parse(&self, text: OsString) -> Result<usize, ConfigError> {
        let number = |text| {
            if self.is_size {
                parse_size(text)
            } else {
                parse_number(text)
            }
        };
        let value = text
            .to_str()
            .and_then(number)
            .filter(|&value| self.in_bounds(value));
        let (name, accepted) = (self.variable, self.accepted);
        value.ok_or_else(|| ConfigError::BadValue {
            name,
            value: format!("{text:?}"),
            accepted,
        })
    }
}

fn parse_number(text: &str) -> Option<usize> {
    // `parse` would take a plus sign as well.
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn parse_size(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" | "KiB" => KIB,
        "M" | "MiB" => MIB,
        "G" | "GiB" => GIB,
        _ => return None,
    };
    parse_number(digits)?.checked_mul(unit)
}

#[cfg(test)]
mod tests;
