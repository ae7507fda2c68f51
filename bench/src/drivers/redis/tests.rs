use super::*;

const PRINTED: &str = r#""test","rps","avg_latency_ms","min_latency_ms"
"SET","99009.90","0.255","0.112"
"GET","101010.10","0.250","0.104"
"#;

#[test]
fn the_rates_of_both_tests_are_read() {
    assert_eq!(per_second(PRINTED, "SET").unwrap(), 99_009.90);
    assert_eq!(per_second(PRINTED, "GET").unwrap(), 101_010.10);
}

#[test]
fn a_test_that_is_missing_is_an_error_with_what_was_printed() {
    let error = per_second("Could not connect", "SET").unwrap_err();
    assert!(error.to_string().contains("Could not connect"), "{error}");
}
