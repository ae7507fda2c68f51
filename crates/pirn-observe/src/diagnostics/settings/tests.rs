use super::*;

fn resolve(variables: &[(&str, &str)]) -> Result<Settings, BadValue> {
    Settings::resolve(|name| {
        let mut all = variables.iter();
        all.find(|(n, _)| *n == name).map(|(_, value)| value.into())
    })
}

fn on(list: &str) -> Vec<(&'static str, u64)> {
    let settings = resolve(&[(DIAGNOSTICS, list)]).unwrap();
    let on = Kind::ALL
        .iter()
        .filter_map(|&kind| Some((kind.name(), settings.limit(kind)?)));
    on.collect()
}

const MS: u64 = 1_000_000;

#[test]
fn unset_means_the_defaults() {
    let defaults = resolve(&[]).unwrap();
    let list = "stuck-carrier=1s, spares-exhausted=1000ms, pool-full";
    assert_eq!(defaults, resolve(&[(DIAGNOSTICS, list)]).unwrap());
    assert_eq!(defaults.trace, Trace::Line);
}

#[test]
fn only_what_a_list_names_is_on() {
    assert_eq!(on("none"), []);
    assert_eq!(
        on("growing-site,pool-full=50ms"),
        [("pool-full", 50 * MS), ("growing-site", 1000)]
    );
    assert_eq!(on("growing-site=7"), [("growing-site", 7)]);
}

#[test]
fn tracing_comes_earlier_and_says_more() {
    let trace = |value, list| {
        let settings = resolve(&[(TRACE_STUCK, value), (DIAGNOSTICS, list)]).unwrap();
        (settings.trace, settings.limit(Kind::StuckCarrier))
    };
    assert_eq!(
        trace("short", "stuck-carrier"),
        (Trace::Short, Some(20 * MS))
    );
    assert_eq!(trace("full", "none"), (Trace::Full, Some(20 * MS)));
    let own = "stuck-carrier=3s";
    assert_eq!(trace("full", own), (Trace::Full, Some(3000 * MS)));
}

#[test]
fn anything_else_is_an_error_that_names_the_variable() {
    for list in [
        "",
        "all",
        "none,",
        "growing-site=0",
        "growing-site=x",
        "pool-full=1",
        "pool-full=1ms",
        "pool-full=",
        "pool-full=+1s",
        "-pool-full",
        "stuck-carrier=99999999999999999999s",
    ] {
        let error = resolve(&[(DIAGNOSTICS, list)]).unwrap_err();
        assert_eq!(
            (error.name, error.value.to_str()),
            (DIAGNOSTICS, Some(list))
        );
    }
    for value in ["", "off", "SHORT"] {
        let error = resolve(&[(TRACE_STUCK, value)]).unwrap_err();
        assert_eq!(
            (error.name, error.value.to_str()),
            (TRACE_STUCK, Some(value))
        );
    }
}
