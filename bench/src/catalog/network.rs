//! Workloads of servers and their clients.

use super::{Case, Context, Cores, Metric, Params, Workload, answered, case, higher, lower};
use crate::drivers::{Gateway, Http, Users};
use crate::results::number;

/// The peers that have an HTTP server.
const SERVERS: &[&str] = &[
    "pirn",
    "jdk-virtual",
    "helidon",
    "jdk-platform",
    "go",
    "tokio",
    "may",
    "os-threads",
];

/// A server: half of the cores are the client's.
fn server(call: &'static str, params: &[(&'static str, u64)], metrics: Vec<Metric>) -> Case {
    Case {
        cores: Cores::Half,
        only: Some(SERVERS),
        ..case(call, params, metrics)
    }
}

pub fn http(cx: &Context) -> Workload {
    let counts: &[u32] = cx.size.pick(&[100, 1_000, 10_000], &[20]);
    let seconds = cx.size.pick(3, 1);
    let metrics = || answered(higher("requests", "requests/s"));
    let kept = |&connections: &u32| Case {
        name: format!("{} connections", number(connections as f64)),
        x: Some(f64::from(connections)),
        threads: connections.into(),
        driver: Box::new(Http {
            connections,
            seconds,
            close: false,
        }),
        ..server("serve", &[("delay_ms", 0)], metrics())
    };
    let mut cases: Vec<Case> = counts.iter().map(kept).collect();
    let connections = cx.size.pick(100, 10);
    cases.push(Case {
        name: "a connection per request".into(),
        threads: connections.into(),
        driver: Box::new(Http {
            connections,
            seconds: 1,
            close: true,
        }),
        ..server("serve", &[("delay_ms", 0)], metrics())
    });
    Workload {
        name: "http",
        about: "hello over HTTP, from wrk",
        sources: &["minimal HTTP, ab -k -c 100: 11,000 against more than 24,000 requests/s"],
        rounds: 1,
        cases,
    }
}

pub fn users(cx: &Context) -> Workload {
    // Users stay for three delays, so no more than 18,000 of them are there at once.
    let (users, delay_ms, ramp_ms) = cx.size.pick((20_000, 1500, 5000), (50, 50, 50));
    let driver = Users { requests: 3 };
    Workload {
        name: "users",
        about: "20,000 users arrive one after the other, each makes three requests whose handler waits",
        sources: &[
            "ramp 20 s, handler 6 s: platform threads 29.79 % errors, mean 6,495 ms, max 14,144; cached pool 0.32 %, 6,228, 10,519; virtual 0 %, 6,042, 7,667",
        ],
        rounds: 1,
        cases: vec![Case {
            threads: users,
            driver: Box::new(driver),
            fresh: true,
            ..server(
                "serve",
                &[
                    ("delay_ms", delay_ms),
                    ("users", users),
                    ("ramp_ms", ramp_ms),
                ],
                vec![
                    lower("errors", "%"),
                    lower("mean over the delay", "ms"),
                    lower("p99 over the delay", "ms"),
                    lower("max over the delay", "ms"),
                    lower("memory", "MiB"),
                    lower("OS threads", "threads"),
                ],
            )
        }],
    }
}

pub fn gateway(cx: &Context) -> Workload {
    let counts: &[u64] = cx.size.pick(&[1_000, 4_000, 8_000], &[20]);
    let (delay_ms, ramp_ms, measure_ms) = cx.size.pick((333, 1500, 1000), (10, 20, 20));
    let of = |&connections: &u64| Case {
        name: format!("{} connections", number(connections as f64)),
        x: Some(connections as f64),
        threads: connections,
        fresh: true,
        driver: Box::new(Gateway {
            connections,
            ramp_ms,
            measure_ms,
        }),
        backend: Some(delay_ms),
        ..server(
            "gateway",
            &[("backend", 0)],
            vec![
                lower("errors", "%"),
                lower("mean", "ms"),
                lower("p99", "ms"),
            ],
        )
    };
    Workload {
        name: "gateway",
        about: "a frontend calls a backend three times in a row, 333 ms each",
        sources: &[
            "1,000 to 20,000 connections: virtual 1,015, 1,030, 1,079, 1,289, 1,729 ms; async 1,014, 1,026, 1,064, 1,541, 2,070; threads 1,016, 1,042, 1,475, 2,654, 4,041",
        ],
        rounds: 1,
        cases: counts.iter().map(of).collect(),
    }
}

pub fn echo(cx: &Context) -> Workload {
    let of = |connections: u64, trips: u64| Case {
        name: match connections {
            1 => "1 connection".into(),
            n => format!("{} connections", number(n as f64)),
        },
        threads: 2 * connections,
        for_os_threads: Params::default(),
        ..case(
            "echo",
            &[("connections", connections), ("trips", trips)],
            vec![lower("round trip", "ns/round trip")],
        )
    };
    let cases = cx.size.pick([(1, 5_000), (100, 300)], [(1, 20), (10, 5)]);
    Workload {
        name: "echo",
        about: "64 bytes there and back over loopback, server and clients in one program",
        sources: &[],
        rounds: 3,
        cases: cases
            .map(|(connections, trips)| of(connections, trips))
            .into(),
    }
}
