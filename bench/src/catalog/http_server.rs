//! The workload `http-server`: servers of libraries, for production, beside each other.

use super::{Case, Context, Cores, Metric, Workload, answered, case, higher, lower};
use crate::drivers::{HttpServer, Served, What};

const PEERS: &[&str] = &[
    "pirn-http",
    "pirn-textbook",
    "helidon",
    "go",
    "tokio",
    "may",
];

/// How long bodies are.
const LENGTH: u64 = 1 << 20;

/// What a case asks of the servers, beyond HTTP/1.1.
#[derive(Clone, Copy, Default)]
struct Needs {
    http2: bool,
    tls: bool,
    bodies: bool,
    delay_ms: u64,
}

/// A server on one half of the cores; the other half is the client's.
fn server(name: &str, connections: u64, needs: Needs, metrics: Vec<Metric>) -> Case {
    let params = [
        ("delay_ms", needs.delay_ms),
        ("connections", connections),
        ("http2", needs.http2.into()),
        ("tls", needs.tls.into()),
        ("body", if needs.bodies { LENGTH } else { 0 }),
    ];
    Case {
        name: name.into(),
        cores: Cores::Half,
        only: Some(PEERS),
        threads: connections,
        ..case("http-server", &params, metrics)
    }
}

/// A server that is asked for one thing as often as it can answer.
fn busy(cx: &Context, name: &str, connections: u64, what: What, needs: Needs) -> Case {
    let rate = match what {
        What::Greeting | What::Streams(_) => higher("requests", "requests/s"),
        What::Upload | What::Download => higher("throughput", "MB/s"),
    };
    Case {
        driver: Box::new(HttpServer::new(what, connections, cx.size.pick(2, 1))),
        ..server(name, connections, needs, answered(rate))
    }
}

/// A server whose handlers wait by calls that block, all at once.
fn blocked(cx: &Context) -> Case {
    let (connections, delay_ms) = cx.size.pick((5_000, 100), (20, 10));
    let (ramp_ms, measure_ms) = cx.size.pick((3000, 3000), (50, 500));
    let needs = Needs {
        delay_ms,
        ..Needs::default()
    };
    let metrics = vec![
        lower("errors", "%"),
        higher("requests", "requests/s"),
        lower("p50", "ms"),
        lower("p99", "ms"),
        lower("processor", "µs/request"),
        lower("memory", "MiB"),
        lower("OS threads", "threads"),
    ];
    Case {
        fresh: true,
        driver: Box::new(Served {
            connections,
            ramp_ms,
            measure_ms,
            echo: false,
        }),
        ..server("5,000 handlers block", connections, needs, metrics)
    }
}

pub fn http_server(cx: &Context) -> Workload {
    let (few, many) = cx.size.pick((100, 1_000), (10, 20));
    let (bodies_on, streams) = cx.size.pick((10, 10), (2, 3));
    let none = Needs::default();
    let http2 = Needs {
        http2: true,
        ..none
    };
    let tls = Needs { tls: true, ..none };
    let bodies = Needs {
        bodies: true,
        ..none
    };
    Workload {
        name: "http-server",
        about: "servers of libraries: hello over HTTP/1.1, HTTP/2 and TLS; 1 MiB up and down; 5,000 handlers that block",
        sources: &[],
        rounds: 3,
        cases: vec![
            busy(cx, "100 connections", few, What::Greeting, none),
            busy(cx, "1,000 connections", many, What::Greeting, none),
            busy(
                cx,
                "HTTP/2, 100 × 10 streams",
                few,
                What::Streams(streams),
                http2,
            ),
            busy(cx, "TLS, 100 connections", few, What::Greeting, tls),
            busy(cx, "upload of 1 MiB", bodies_on, What::Upload, bodies),
            busy(cx, "download of 1 MiB", bodies_on, What::Download, bodies),
            blocked(cx),
        ],
    }
}
