//! Tests of the settings.

use super::*;
use std::os::unix::ffi::OsStringExt;

/// A store's settings under these variables.
fn resolve(store: &Store, variables: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    store.resolve(|name| {
        variables
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, value)| value.into())
    })
}

/// A variable's effect on an empty store.
fn resolve_one(name: &str, value: &str) -> Result<Settings, ConfigError> {
    resolve(&Store::new(), &[(name, value)])
}

fn defaults() -> Settings {
    resolve(&Store::new(), &[]).unwrap()
}

#[test]
fn defaults_are_as_documented() {
    let machine = std::thread::available_parallelism().unwrap().get();
    let expected = Settings {
        parallelism: machine.min(1024),
        stack_size: if cfg!(debug_assertions) {
            2 << 20
        } else {
            262_144
        },
        large_stack_size: 2 << 20,
        max_blocking_threads: 256,
        spare_carriers: 16,
        spin: Duration::from_micros(20),
        tls_reserve: None,
        slice: Duration::from_millis(10),
        #[cfg(feature = "dump")]
        diagnostics: diagnostics::Settings::resolve(|_| None).unwrap(),
        observe: None,
        sigquit: true,
    };
    assert_eq!(defaults(), expected);
}

#[test]
fn the_program_beats_the_defaults() {
    let store = Store::new();
    let configuration = Config::new()
        .parallelism(3)
        .stack_size(32 * KIB)
        .max_blocking_threads(5)
        .spare_carriers(0)
        .spin(0)
        .tls_reserve(64)
        .time_slice(Duration::from_micros(2500))
        .observe(true)
        .dump_on_sigquit(false);
    store.apply(&configuration).unwrap();
    let expected = Settings {
        parallelism: 3,
        stack_size: 32 * KIB,
        large_stack_size: 32 * KIB,
        max_blocking_threads: 5,
        spare_carriers: 0,
        spin: Duration::ZERO,
        tls_reserve: Some(64),
        slice: Duration::from_micros(2500),
        #[cfg(feature = "dump")]
        diagnostics: diagnostics::Settings::resolve(|_| None).unwrap(),
        observe: Some(true),
        sigquit: false,
    };
    assert_eq!(resolve(&store, &[]), Ok(expected));
}

#[test]
fn the_environment_beats_the_program_setting_by_setting() {
    let store = Store::new();
    store.apply(&Config::new().parallelism(3).spin(7)).unwrap();
    let settings = resolve(&store, &[("PIRN_PARALLELISM", "9")]).unwrap();
    let expected = Settings {
        parallelism: 9,
        spin: Duration::from_micros(7),
        ..defaults()
    };
    assert_eq!(settings, expected);
}

#[test]
fn every_variable_is_read() {
    let variables = [
        ("PIRN_PARALLELISM", "1024"),
        ("PIRN_STACK_SIZE", "1024M"),
        ("PIRN_MAX_BLOCKING_THREADS", "65536"),
        ("PIRN_SPARE_CARRIERS", "1024"),
        ("PIRN_SPIN_US", "10000"),
        ("PIRN_TLS_RESERVE", "8K"),
        ("PIRN_PREEMPT", "1000"),
        ("PIRN_OBSERVE", "0"),
        ("PIRN_SIGQUIT", "off"),
    ];
    let expected = Settings {
        parallelism: 1024,
        stack_size: 1 << 30,
        large_stack_size: 1 << 30,
        max_blocking_threads: 65536,
        spare_carriers: 1024,
        spin: Duration::from_millis(10),
        tls_reserve: Some(8 * KIB),
        slice: Duration::from_secs(1),
        #[cfg(feature = "dump")]
        diagnostics: diagnostics::Settings::resolve(|_| None).unwrap(),
        observe: Some(false),
        sigquit: false,
    };
    assert_eq!(resolve(&Store::new(), &variables), Ok(expected));
}

#[test]
fn sizes_take_suffixes() {
    let sizes = [
        ("16384", 16384),
        ("16K", 16384),
        ("17KiB", 17 << 10),
        ("2M", 2 << 20),
        ("1024MiB", 1 << 30),
        ("1G", 1 << 30),
        ("1GiB", 1 << 30),
        ("0100000", 100_000),
        ("1073741823", (1 << 30) - 1),
    ];
    for (text, bytes) in sizes {
        let settings = resolve_one("PIRN_STACK_SIZE", text);
        assert_eq!(settings.map(|s| s.stack_size), Ok(bytes), "for {text}");
    }
}

#[test]
fn slices_are_in_milliseconds_or_microseconds() {
    for (text, micros) in [
        ("0", 0),
        ("10", 10_000),
        ("100us", 100),
        ("1000000us", 1_000_000),
    ] {
        let settings = resolve_one("PIRN_PREEMPT", text);
        let slice = Duration::from_micros(micros);
        assert_eq!(settings.map(|s| s.slice), Ok(slice), "for {text}");
    }
    let century = Config::new().time_slice(Duration::MAX);
    Store::new().apply(&century).unwrap_err();
}

#[test]
fn stacks_may_have_a_range_of_sizes() {
    let settings = resolve_one("PIRN_STACK_SIZE", "64K..1M").unwrap();
    assert_eq!(
        (settings.stack_size, settings.large_stack_size),
        (64 * KIB, MIB)
    );
}

#[test]
fn the_variable_of_std_is_the_last_word_before_the_default() {
    let sizes = |store: &Store, variables: &[(&str, &str)]| {
        let settings = resolve(store, variables).unwrap();
        (settings.stack_size, settings.large_stack_size)
    };
    let of_std = ("RUST_MIN_STACK", "3000000");
    assert_eq!(sizes(&Store::new(), &[of_std]), (3_000_000, 3_000_000));
    let ours = ("PIRN_STACK_SIZE", "64K");
    assert_eq!(sizes(&Store::new(), &[of_std, ours]), (64 * KIB, 64 * KIB));
    let store = Store::new();
    store.apply(&Config::new().stack_size(32 * KIB)).unwrap();
    assert_eq!(sizes(&store, &[of_std]), (32 * KIB, 32 * KIB));
    // As in `std`, anything else has no effect, and too little is as much as is needed.
    assert_eq!(
        sizes(&Store::new(), &[("RUST_MIN_STACK", "2M")]),
        DEFAULT_STACK
    );
    assert_eq!(
        sizes(&Store::new(), &[("RUST_MIN_STACK", "0")]).0,
        SMALLEST_STACK
    );
}

#[test]
fn bad_variables_are_errors_that_name_them() {
    let too_long = "9".repeat(30);
    let bad = [
        ("PIRN_PARALLELISM", "0|1025|| 4|+4|-1|2K|four"),
        (
            "PIRN_STACK_SIZE",
            "16383|1025M||K|64 K|64k|2G|1.5M|1T|99999999999999999M|8K..2M|2M..1M|2M..|..2M|1M..2M..4M|1M..2G",
        ),
        ("PIRN_MAX_BLOCKING_THREADS", "0|65537||1M|٣|0x10|1e3|1_000"),
        ("PIRN_SPARE_CARRIERS", "1025||-1|x"),
        ("PIRN_SPIN_US", "10001|20us||-0|1.0|K|∞|\n"),
        ("PIRN_OBSERVE", "2||yes|on"),
        ("PIRN_SIGQUIT", "0|1||ON|no"),
        ("PIRN_PREEMPT", "1001|1000001us||-1|us|5ms|off|1 us"),
    ];
    for (name, values) in bad {
        for value in values.split('|').chain([&*too_long]) {
            let error = resolve_one(name, value).expect_err(value).to_string();
            let start = format!("bad value for {name}: {value:?} (accepted: ");
            assert!(error.starts_with(&start), "{error}");
        }
    }
}

#[test]
fn a_variable_that_is_not_text_is_an_error() {
    let error = Store::new()
        .resolve(|name| (name == "PIRN_SPIN_US").then(|| OsString::from_vec(vec![b'1', 0xff])));
    assert_eq!(
        error.unwrap_err().to_string(),
        r#"bad value for PIRN_SPIN_US: "1\xFF" (accepted: 0 to 10000 microseconds)"#
    );
}

#[test]
fn bad_settings_are_errors_and_set_nothing() {
    let bad = [
        (Config::new().parallelism(0), "parallelism", "0"),
        (Config::new().parallelism(1025), "parallelism", "1025"),
        (
            Config::new().spin(1).stack_size(16383),
            "stack_size",
            "16383",
        ),
        (
            Config::new().stack_size((1 << 30) + 1),
            "stack_size",
            "1073741825",
        ),
        (
            Config::new().max_blocking_threads(0),
            "max_blocking_threads",
            "0",
        ),
        (
            Config::new().spin(usize::MAX),
            "spin",
            "18446744073709551615",
        ),
    ];
    let store = Store::new();
    for (configuration, setting, seen) in bad {
        match store.apply(&configuration) {
            Err(ConfigError::BadValue { name, value, .. }) => {
                assert_eq!((name, &*value), (setting, seen));
            }
            other => panic!("{configuration:?} gave {other:?}"),
        }
    }
    assert_eq!(store.apply(&Config::new().spin(3)), Ok(()));
}

#[test]
fn the_second_apply_fails_and_changes_nothing() {
    let store = Store::new();
    store.apply(&Config::new().parallelism(3)).unwrap();
    let second = store.apply(&Config::new().parallelism(4));
    assert_eq!(second, Err(ConfigError::AlreadyApplied));
    assert_eq!(resolve(&store, &[]).unwrap().parallelism, 3);
}

#[test]
fn apply_fails_once_the_runtime_has_started() {
    for applied in [false, true] {
        let store = Store::new();
        if applied {
            store.apply(&Config::new().parallelism(3)).unwrap();
        }
        let settings = resolve(&store, &[]).unwrap();
        let late = store.apply(&Config::new().parallelism(4));
        assert_eq!(late, Err(ConfigError::AlreadyStarted));
        assert_eq!(
            resolve(&store, &[]),
            Ok(settings),
            "a second resolve differs"
        );
    }
}

#[test]
fn a_failed_start_does_not_freeze() {
    let store = Store::new();
    resolve(&store, &[("PIRN_SPIN_US", "x")]).unwrap_err();
    assert_eq!(store.apply(&Config::new().spin(3)), Ok(()));
}

#[test]
fn of_many_that_apply_one_wins_whole() {
    let store = Store::new();
    let applied = |n: usize| {
        store
            .apply(&Config::new().parallelism(n).spin(n))
            .is_ok()
            .then_some(n)
    };
    let winners: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=8).map(|n| scope.spawn(move || applied(n))).collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().unwrap())
            .collect()
    });
    let [winner] = winners[..] else {
        panic!("{winners:?} won")
    };
    let settings = resolve(&store, &[]).unwrap();
    assert_eq!(settings.parallelism, winner);
    assert_eq!(settings.spin, Duration::from_micros(winner as u64));
}
