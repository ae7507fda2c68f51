use super::*;

fn line(name: &str) -> Option<String> {
    about(OsStr::new(name))
}

#[test]
fn distances_are_those_of_levenshtein() {
    for (one, other, expected) in [
        ("", "", 0),
        ("abc", "", 3),
        ("", "ab", 2),
        ("kitten", "sitting", 3),
        ("PIRN_SPIN", "PIRN_SPIN_US", 3),
    ] {
        assert_eq!(distance(one, other), expected, "{one} {other}");
    }
}

#[test]
fn misspelt_variables_are_reported_with_the_nearest_name() {
    for (name, meant) in [
        ("PIRN_PARALELISM", "PIRN_PARALLELISM"),
        ("PIRN_STACKSIZE", "PIRN_STACK_SIZE"),
        ("PIRN_SPIN", "PIRN_SPIN_US"),
        ("PIRN_SPARE_CARRIER", "PIRN_SPARE_CARRIERS"),
    ] {
        let line = line(name).unwrap();
        assert!(line.contains(name), "{line}");
        assert!(line.contains(&format!("did you mean {meant}?")), "{line}");
    }
}

#[test]
fn a_variable_that_resembles_none_is_reported_with_all_names() {
    let line = line("PIRN_X").unwrap();
    assert!(
        crate::config::variables().all(|name| line.contains(name)),
        "{line}"
    );
}

#[test]
fn known_variables_and_others_are_not_reported() {
    let known = crate::config::variables().chain(OTHERS);
    for name in known.chain(["PATH", "PIRN", "PIRN_TEST_CHILD", "PIRN_STRESS_SECONDS"]) {
        assert_eq!(line(name), None);
    }
}
