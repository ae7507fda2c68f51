//! What is known of the metrics in which Pirn loses: why, and what would help. In `notes.json`,
//! by `workload/case/metric`, where `*` stands for every case or every metric.

use std::collections::BTreeMap;
use std::sync::LazyLock;

static NOTES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../notes.json")).expect("a test reads notes.json")
});

/// The note on a metric, if there is one.
pub fn find(workload: &str, case: &str, metric: &str) -> Option<String> {
    let keys = [
        format!("{workload}/{case}/{metric}"),
        format!("{workload}/*/{metric}"),
        format!("{workload}/{case}/*"),
        format!("{workload}/*/*"),
    ];
    keys.iter().find_map(|key| NOTES.get(key)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_note_is_of_the_form_that_is_looked_for() {
        for key in NOTES.keys() {
            assert_eq!(key.split('/').count(), 3, "{key}");
        }
        assert_eq!(find("no such workload", "c", "m"), None);
    }
}
