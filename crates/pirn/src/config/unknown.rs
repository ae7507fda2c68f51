//! Variables that look like settings but are not.

use pirn_rt::environment;
use std::ffi::OsStr;

/// Variables that other code than the settings reads.
const OTHERS: [&str; 11] = [
    environment::QUIET,
    "PIRN_NO_GUARD_MARKERS",
    "PIRN_NO_FSGSBASE",
    "PIRN_EVENTS",
    // Of the library that is preloaded, and of the command that does so.
    "PIRN_CHILDREN",
    "PIRN_LIBRARY",
    "PIRN_LOG",
    "PIRN_PAUSES",
    "PIRN_PLATFORM",
    "PIRN_PTHREADS",
    "PIRN_SEED",
];

/// Prefixes of the variables of `pirn-sim`, and of this project's own tests.
const PREFIXES: [&str; 3] = ["PIRN_SIM", "PIRN_TEST", "PIRN_STRESS"];

/// At the start, reports the variables that look like settings but are not: most likely misspelt
/// ones.
pub(crate) fn report() {
    if !environment::is_trusted() {
        return;
    }
    for (name, _) in std::env::vars_os() {
        if let Some(line) = about(&name) {
            environment::notice(&line);
        }
    }
}

/// Returns the text about a variable, if there is one.
fn about(name: &OsStr) -> Option<String> {
    let name = name.to_string_lossy();
    let known = || super::variables().chain(OTHERS);
    if !name.starts_with("PIRN_")
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || known().any(|known| known == name)
    {
        return None;
    }
    let nearest = known().min_by_key(|known| distance(known, &name))?;
    Some(if distance(nearest, &name) <= name.len() / 3 {
        format!("the variable {name} is unknown and has no effect (did you mean {nearest}?)")
    } else {
        let known: Vec<_> = super::variables().collect();
        let known = known.join(", ");
        format!("the variable {name} is unknown and has no effect (known: {known})")
    })
}

/// Returns the number of insertions, deletions and replacements of bytes that turn one text into
/// the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
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
}
