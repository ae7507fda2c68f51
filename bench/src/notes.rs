//! Explanations of the metrics in which Pirn loses: why, and what would help. In `notes.json`,
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
mod tests;
