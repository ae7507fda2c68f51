use super::*;

fn resolve(variables: &[(&str, &str)]) -> Result<Lints, ConfigError> {
    Lints::resolve(|name| {
        let mut all = variables.iter();
        all.find(|(n, _)| *n == name).map(|(_, value)| value.into())
    })
}

fn lints(list: &str) -> Lints {
    resolve(&[(LINTS, list)]).unwrap()
}

fn on(lints: &Lints) -> Vec<&'static str> {
    let on = KINDS.iter().filter(|kind| lints.limit(kind.lint).is_some());
    on.map(|kind| kind.name).collect()
}

const MS: u64 = 1_000_000;

#[test]
fn kinds_are_in_the_order_of_their_numbers() {
    for (number, kind) in KINDS.iter().enumerate() {
        assert_eq!(kind.lint as usize, number);
        assert_eq!(kind.lint.kind().name, kind.name);
    }
}

#[test]
fn unset_means_the_defaults() {
    let defaults = resolve(&[]).unwrap();
    assert_eq!(defaults, lints("default"));
    let expected = [
        "stuck-carrier",
        "spares-exhausted",
        "pool-full",
        "deep-stack",
        "deaf-member",
        "few-descriptors",
        "dropped-events",
    ];
    assert_eq!(on(&defaults), expected);
    assert_eq!(defaults.trace, Trace::Line);
    assert_eq!(defaults.limit(Lint::StuckCarrier), Some(1000 * MS));
}

#[test]
fn lists_are_applied_from_left_to_right() {
    assert_eq!(on(&lints("all")).len(), KINDS.len());
    assert!(!lints("none").any());
    assert_eq!(on(&lints("all,none,pool-full")), ["pool-full"]);
    assert_eq!(
        on(&lints("crowded-lock, pool-full")),
        ["pool-full", "crowded-lock"]
    );
    assert_eq!(on(&lints("all,-pool-full")).len(), KINDS.len() - 1);
    assert_eq!(
        lints("long-runnable").limit(Lint::LongRunnable),
        Some(100 * MS)
    );
}

#[test]
fn limits_have_the_units_of_their_lints() {
    let list = "stuck-carrier=50ms,deaf-member=2s,deep-stack=95%,few-descriptors=50,crowded-lock=7";
    let lints = lints(list);
    let limit = |lint| lints.limit(lint).unwrap();
    assert_eq!(limit(Lint::StuckCarrier), 50 * MS);
    assert_eq!(limit(Lint::DeafMember), 2000 * MS);
    assert_eq!(limit(Lint::DeepStack), 95);
    assert_eq!(limit(Lint::FewDescriptors), 50);
    assert_eq!(limit(Lint::CrowdedLock), 7);
}

#[test]
fn tracing_comes_earlier_and_says_more() {
    let trace = |value, list| {
        let lints = resolve(&[(TRACE_STUCK, value), (LINTS, list)]).unwrap();
        (lints.trace, lints.limit(Lint::StuckCarrier))
    };
    assert_eq!(trace("short", "default"), (Trace::Short, Some(20 * MS)));
    assert_eq!(trace("full", "none"), (Trace::Full, Some(20 * MS)));
    let own = "stuck-carrier=3s";
    assert_eq!(trace("full", own), (Trace::Full, Some(3000 * MS)));
    assert_eq!(trace("off", "all"), (Trace::Line, None));
}

#[test]
fn anything_else_is_an_error_that_names_the_variable() {
    for list in [
        "",
        "every",
        "all,",
        "deep-stack=0",
        "deep-stack=100",
        "pool-full=1",
        "pool-full=1ms",
        "pool-full=",
        "pool-full=+1s",
        "-pool-full=1s",
        "crowded-lock=x",
        "stuck-carrier=99999999999999999999s",
    ] {
        let error = resolve(&[(LINTS, list)]).unwrap_err().to_string();
        assert!(error.contains(LINTS) && error.contains(list), "{error}");
    }
    for value in ["", "on", "SHORT"] {
        let error = resolve(&[(TRACE_STUCK, value)]).unwrap_err().to_string();
        assert!(error.contains(TRACE_STUCK), "{error}");
    }
}
