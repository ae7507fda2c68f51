//! Made-up results with all that a table must handle, for the tests.

use crate::catalog::{Better, Metric};
use crate::results::{Failure, MetricResults, PIRN, Results, Row};

/// As an earlier run would have written it: values over four orders of magnitude, a goal that is
/// met, a loss with its reason and one without, a peer that was skipped, one that cannot, one that
/// has failed with a long text, and an infinite ratio.
pub fn results() -> Results {
    let peer = |name: &str, title: &str| {
        let skipped = (name == "helidon").then_some("mvn was not found: No such file (os error 2)");
        serde_json::json!({
            "name": name, "title": title, "version": "1.2.3", "skipped": skipped,
            "flags": "cargo build --release (opt-level 3, no LTO)",
        })
    };
    let row = |peer: &str, values: &[f64]| Row::new(peer, values.to_vec(), None);
    let failure = |peer: &str, why: String, expected| Failure {
        peer: peer.into(),
        why,
        expected,
    };
    let lower = |name: &str, unit: &str| Metric::of(name, unit, Better::Lower);
    let burst = vec![
        row(PIRN, &[146.2, 140.1, 171.0]),
        row("jdk-virtual", &[290.0, 271.0, 355.0]),
        row("os-threads", &[18_340.0, 15_220.0, 23_900.0]),
    ];
    let burst = MetricResults::new(
        Metric {
            goal: Some(150.0),
            ..lower("burst", "ns/thread")
        },
        burst,
        vec![],
    );
    let main = vec![
        row(PIRN, &[9_120.0, 7_800.0, 11_000.0]),
        row("jdk-virtual", &[450.0; 3]),
    ];
    let mut main = MetricResults::new(lower("join main", "ns/thread"), main, vec![]);
    main.note = Some("main parks a platform thread for each join".into());
    let no_park = failure("may", "it has no park".into(), true);
    let mut park = MetricResults::new(
        lower("park", "ns"),
        vec![row(PIRN, &[131.0])],
        vec![no_park],
    );
    park.rows[0].remark = Some("with Notify, which is what there is".into());
    let most = vec![row(PIRN, &[228_000.0]), row("jdk-virtual", &[2_400_000.0])];
    let most = MetricResults::new(
        Metric::of("most threads", "threads", Better::Higher),
        most,
        vec![],
    );
    let errors = vec![row(PIRN, &[0.5]), row("jdk-virtual", &[0.0])];
    let errors = MetricResults::new(lower("errors", "%"), errors, vec![]);
    let trace = "\tat may::coroutine\x1b[31m::spawn::ThreadStackOverflowWithALongName\n".repeat(30);
    let case = |name: &str, metrics: Vec<MetricResults>, failures: Vec<Failure>| {
        serde_json::json!({
            "name": name, "x": null, "parameters": "threads=100000 ms=1000",
            "metrics": metrics, "failures": failures,
        })
    };
    let no_room = failure("os-threads", "1,000,000 threads are too many".into(), true);
    let killed = failure(
        "may",
        format!("killed by signal 11 (SIGSEGV)\n{trace}"),
        false,
    );
    let workload = |name: &str, cases: Vec<_>| {
        let about = format!("does what {name} does, over and over again, and once more");
        serde_json::json!({ "name": name, "about": about, "sources": ["JDK 290 ns"], "cases": cases })
    };
    let results = serde_json::json!({
        "date": "2026-11-20 19:05", "arguments": ["--rounds", "3", "--json", "my file.json"],
        "machine": { "processor": "CPU @ 2.50GHz", "cores": 2, "memory_kib": 8 << 20, "kernel": "6.12.0" },
        "quick": false,
        "peers": [
            peer(PIRN, "Pirn"), peer("jdk-virtual", "JDK virtual threads"), peer("may", "may"),
            peer("os-threads", "OS threads (Rust)"), peer("helidon", "Helidon (JDK virtual)"),
        ],
        "workloads": [
            workload("spawn", vec![case("", vec![burst, main], vec![])]),
            workload("pingpong", vec![case("", vec![park], vec![])]),
            workload("parked", vec![case("in 1,024 MiB", vec![most], vec![no_room])]),
            workload("users", vec![case("", vec![errors], vec![killed])]),
        ],
    });
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), results.to_string()).expect("a written file");
    Results::read(file.path()).expect("these are results")
}
