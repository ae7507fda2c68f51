//! Made-up results with all that a report must handle, for the tests.

use crate::catalog::{Metric, higher, lower};
use crate::machine::Machine;
use crate::results::{
    CaseResults, Failure, MetricResults, PIRN, PeerInfo, Results, Row, WorkloadResults,
};

const PEERS: [(&str, &str); 9] = [
    (PIRN, "Pirn"),
    ("jdk-virtual", "JDK virtual threads"),
    ("go", "Go"),
    ("tokio", "tokio"),
    ("may", "may"),
    ("jdk-platform", "JDK platform threads"),
    ("os-threads", "OS threads (Rust)"),
    ("helidon", "Helidon (JDK virtual)"),
    ("rayon", "rayon"),
];

pub fn results() -> Results {
    Results {
        date: "2026-11-20 19:05".into(),
        arguments: ["--rounds", "3", "--html", "my report.html"]
            .map(String::from)
            .into(),
        machine: Machine {
            processor: "Example CPU @ 2.50GHz".into(),
            cores: 2,
            memory_kib: 8 << 20,
            kernel: "6.12.0".into(),
        },
        quick: false,
        peers: PEERS.map(|(name, title)| peer(name, title)).into(),
        workloads: vec![spawn(), pingpong(), parked(), users(), chain()],
    }
}

fn peer(name: &str, title: &str) -> PeerInfo {
    let skipped = "mvn was not found: No such file or directory (os error 2)";
    PeerInfo {
        name: name.into(),
        title: title.into(),
        version: (name != "helidon").then(|| format!("{name} 1.2.3")),
        flags: "cargo build --release (opt-level 3, no LTO)".into(),
        skipped: (name == "helidon").then(|| skipped.into()),
    }
}

fn workload(name: &str, sources: &[&str], cases: Vec<CaseResults>) -> WorkloadResults {
    WorkloadResults {
        name: name.into(),
        about: format!("does what {name} does, over and over again"),
        sources: sources.iter().map(|&source| source.into()).collect(),
        cases,
    }
}

fn case(name: &str, x: Option<f64>, metrics: Vec<MetricResults>) -> CaseResults {
    CaseResults {
        name: name.into(),
        x,
        parameters: "threads=100000 ms=1000".into(),
        metrics,
        failures: vec![],
    }
}

fn metric(metric: Metric, rows: &[(&str, &[f64])]) -> MetricResults {
    let row = |(peer, values): &(&str, &[f64])| Row::new(peer, values.to_vec(), None);
    MetricResults::new(metric, rows.iter().map(row).collect(), vec![])
}

fn failure(peer: &str, why: &str, expected: bool) -> Failure {
    Failure {
        peer: peer.into(),
        why: why.into(),
        expected,
    }
}

/// Values over four orders of magnitude, goals met and missed, a loss with its reason.
fn spawn() -> WorkloadResults {
    let burst = metric(
        lower("burst", "ns/thread").goal(150.0),
        &[
            (PIRN, &[146.2, 140.1, 171.0]),
            ("jdk-virtual", &[290.0, 271.0, 355.0]),
            ("go", &[470.0, 455.0, 512.0]),
            ("tokio", &[640.0, 601.0, 660.0]),
            ("may", &[2000.0, 1830.0, 2900.0]),
            ("jdk-platform", &[61_203.0, 52_000.0, 80_100.0]),
            ("os-threads", &[18_340.0, 15_220.0, 23_900.0]),
        ],
    );
    let mut main = metric(
        lower("join main", "ns/thread").goal(1000.0),
        &[
            (PIRN, &[9_120.0, 7_800.0, 11_000.0]),
            ("go", &[450.0, 430.0, 520.0]),
            ("may", &[38_000.0, 31_000.0, 45_000.0]),
        ],
    );
    main.note = Some(
        "main parks a platform thread for each join; spinning for a moment first would help".into(),
    );
    let sources = ["burst: JDK 290 ns, Go 470, tokio 640, may 2,000 (two cores)"];
    workload("spawn", &sources, vec![case("", None, vec![burst, main])])
}

/// A metric that a peer does not have.
fn pingpong() -> WorkloadResults {
    let mut park = metric(
        lower("park", "ns/round trip"),
        &[
            (PIRN, &[131.0, 118.0, 149.0]),
            ("go", &[132.0, 119.0, 150.0]),
            ("tokio", &[240.0, 233.0, 260.0]),
        ],
    );
    park.skipped = vec![failure("may", "it has no park", true)];
    park.rows[2].remark = Some("with Notify, which is what there is".into());
    workload("pingpong", &[], vec![case("", None, vec![park])])
}

/// Curves, one of which ends early, and a number for which more is better.
fn parked() -> WorkloadResults {
    let point = |x: f64, name: &str| {
        let bytes = |v: f64| vec![v * (1.0 + 1000.0 / x)];
        let rows = [
            (PIRN, bytes(4700.0)),
            ("jdk-virtual", bytes(943.0)),
            ("go", bytes(2726.0)),
            ("tokio", bytes(447.0)),
        ];
        let rows: Vec<(&str, &[f64])> = rows
            .iter()
            .map(|(peer, values)| (*peer, values.as_slice()))
            .collect();
        let spawn: &[(&str, &[f64])] = &[(PIRN, &[410.0]), ("go", &[900.0])];
        case(
            name,
            Some(x),
            vec![
                metric(lower("bytes", "B/thread"), &rows),
                metric(lower("spawn", "ns/thread"), spawn),
            ],
        )
    };
    let mut cases = vec![
        point(10_000.0, "10000 threads"),
        point(100_000.0, "100000 threads"),
        point(1_000_000.0, "1000000 threads"),
    ];
    cases[0].metrics[0]
        .rows
        .push(Row::new("os-threads", vec![24_500.0], None));
    let no_room = "1,000,000 threads need more than kernel.pid_max of this machine allows (28,672)";
    cases[2].failures = vec![failure("os-threads", no_room, true)];
    let most = metric(
        higher("most threads", "threads"),
        &[(PIRN, &[228_000.0]), ("tokio", &[2_400_000.0])],
    );
    cases.push(case("in 1024 MiB", None, vec![most]));
    workload(
        "parked",
        &["most threads parked: 32,539 platform, 14,625,956 virtual"],
        cases,
    )
}

/// Zeros, and a ratio that is infinite.
fn users() -> WorkloadResults {
    let errors = metric(
        lower("errors", "%"),
        &[(PIRN, &[0.5]), ("go", &[0.0]), ("jdk-platform", &[29.79])],
    );
    let none = metric(lower("refused", "%"), &[(PIRN, &[0.0]), ("go", &[0.0])]);
    workload("users", &[], vec![case("", None, vec![errors, none])])
}

/// No peer has a number; one has a long error text.
fn chain() -> WorkloadResults {
    let trace =
        "\tat may::coroutine\x1b[31m::spawn::ThreadStackOverflowWithAnExcessivelyLongName\n"
            .repeat(30);
    let mut chain = case("", None, vec![metric(lower("wall", "s"), &[])]);
    chain.failures = vec![
        failure(PIRN, "gave up after 120 s", false),
        failure(
            "may",
            &format!("killed by signal 11 (SIGSEGV)\n{trace}"),
            false,
        ),
    ];
    workload("chain", &["a chain of 1 M actors: 4.07 s"], vec![chain])
}
