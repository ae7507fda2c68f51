//! Why settings are refused.

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
