//! Workloads of programs that know nothing of Pirn: natively, and under `pirn run`.

use super::{Case, Context, Cores, Metric, Params, Program, Workload, case, higher, lower};
use crate::drivers::{Parked, Redis, Served};
use crate::results::number;

const PEERS: &[&str] = &["native", "pirn-run"];

/// What the JVM needs for a thread, in bytes: a stack with some pages used, page tables, its own
/// data.
const JAVA_THREAD: u64 = 80 * 1024;

fn run(
    program: Program,
    call: &'static str,
    params: &[(&'static str, u64)],
    metrics: Vec<Metric>,
) -> Case {
    Case {
        program,
        needs: program.needs(),
        only: Some(PEERS),
        ..case(call, params, metrics)
    }
}

/// Returns the time of a metric on the clock, and on all processors.
fn both(name: &str, unit: &str) -> [Metric; 2] {
    [
        lower(name, unit),
        lower(&format!("{name}, processor"), unit),
    ]
}

fn threads(count: u64) -> String {
    format!("{} threads", number(count as f64))
}

pub fn spawn(cx: &Context) -> Workload {
    let (inside, main, burst) = cx.size.pick((100_000, 20_000, 10_000), (20, 20, 50));
    let params = [("inside", inside), ("main", main), ("burst", burst)];
    let [inside, inside_processor] = both("join inside", "ns/thread");
    let [main, main_processor] = both("join main", "ns/thread");
    let [at_once, at_once_processor] = both("at once", "ns/thread");
    let metrics = vec![
        inside.goal(400.0),
        inside_processor,
        main.goal(2000.0),
        main_processor,
        at_once,
        at_once_processor,
    ];
    let fewer = cx.size.pick(10_000, 20);
    Workload {
        name: "run-spawn",
        about: "a program in C starts and joins threads: one after the other, from a thread and from main; 10,000 at once",
        sources: &[],
        rounds: 3,
        cases: vec![Case {
            for_os_threads: Params(vec![("inside", fewer), ("main", fewer)]),
            threads: burst,
            ..run(Program::C, "run-spawn", &params, metrics)
        }],
    }
}

pub fn parked(cx: &Context) -> Workload {
    let of = |&count: &u64| {
        let mut metrics = vec![
            lower("bytes", "B/thread"),
            lower("of it kernel", "B/thread").part(),
        ];
        metrics.extend(both("spawn", "ns/thread"));
        metrics.extend(both("wake", "ns/thread"));
        Case {
            name: threads(count),
            x: Some(count as f64),
            fresh: true,
            fits: Some("threads"),
            memory: count * 14 * 1024,
            driver: Box::new(Parked { at: "parked" }),
            ..run(
                Program::C,
                "run-parked",
                &[("threads", count), ("stack_kib", 0)],
                metrics,
            )
        }
    };
    let counts: &[u64] = cx.size.pick(&[10_000, 200_000], &[50, 100]);
    Workload {
        name: "run-parked",
        about: "threads of a program in C wait for semaphores: bytes of each, page tables and the kernel's share included; natively as many as fit",
        sources: &[],
        rounds: 1,
        cases: counts.iter().map(of).collect(),
    }
}

/// A server, on one half of the cores.
fn server(program: Program, call: &'static str, params: &[(&'static str, u64)]) -> Case {
    let metrics = vec![
        lower("errors", "%"),
        higher("requests", "requests/s"),
        lower("p99", "ms"),
        lower("processor", "µs/request"),
        lower("memory", "MiB"),
        lower("OS threads", "threads"),
    ];
    Case {
        cores: Cores::Half,
        ..run(program, call, params, metrics)
    }
}

pub fn echo(cx: &Context) -> Workload {
    let counts: &[u64] = cx.size.pick(&[100, 5_000, 9_000], &[10]);
    let (ramp_ms, measure_ms) = cx.size.pick((3000, 3000), (50, 200));
    let of = |&connections: &u64| Case {
        name: format!("{} connections", number(connections as f64)),
        x: Some(connections as f64),
        threads: connections,
        fresh: true,
        driver: Box::new(Served {
            connections,
            ramp_ms,
            measure_ms,
            echo: true,
        }),
        ..server(Program::C, "run-echo", &[("connections", connections)])
    };
    Workload {
        name: "run-echo",
        about: "a server in C, a thread per connection, sends back 64 bytes: what it answers, and what that takes",
        sources: &[],
        rounds: 2,
        cases: counts.iter().map(of).collect(),
    }
}

pub fn python(cx: &Context) -> Workload {
    let (counts, ms): (&[u64], u64) = cx.size.pick((&[5_000, 30_000], 1000), (&[20], 20));
    let sleepers = |&count: &u64| Case {
        name: format!("{} sleepers", number(count as f64)),
        fresh: true,
        threads: count,
        memory: count * 64 * 1024,
        ..run(
            Program::Python,
            "run-sleepers",
            &[("threads", count), ("ms", ms)],
            both("wall", "s").into(),
        )
    };
    let mut cases: Vec<Case> = counts.iter().map(sleepers).collect();
    cases.push(Case {
        name: "queues".into(),
        ..run(
            Program::Python,
            "run-queue",
            &[("trips", cx.size.pick(20_000, 20))],
            both("round trip", "µs/round trip").into(),
        )
    });
    Workload {
        name: "run-python",
        about: "Python's threads: 5,000 and 30,000 sleep 1 s; two pass a number to and fro over queues",
        sources: &[],
        rounds: 2,
        cases,
    }
}

pub fn java(cx: &Context) -> Workload {
    let of = |&count: &u64| {
        let metrics = [both("start", "µs/thread"), both("end", "µs/thread")].concat();
        Case {
            name: threads(count),
            fresh: true,
            threads: count,
            memory: count * JAVA_THREAD,
            ..run(Program::Java, "run-threads", &[("threads", count)], metrics)
        }
    };
    let counts: &[u64] = cx.size.pick(&[5_000, 20_000], &[20]);
    Workload {
        name: "run-java",
        about: "a program for JDK 17 starts 5,000 and 20,000 platform threads that are all there at once, and ends them",
        sources: &[],
        rounds: 1,
        cases: counts.iter().map(of).collect(),
    }
}

/// The peer `jdk-virtual` is the same program with the JDK's own virtual threads.
pub fn java_server(cx: &Context) -> Workload {
    let sizes: &[(u64, u64)] = cx.size.pick(&[(100, 0), (5_000, 1000)], &[(10, 5)]);
    let (ramp_ms, measure_ms) = cx.size.pick((3000, 3000), (50, 1000));
    let of = |&(connections, delay_ms): &(u64, u64)| Case {
        name: match delay_ms {
            0 => format!("{} connections", number(connections as f64)),
            _ => format!("{} connections, {delay_ms} ms", number(connections as f64)),
        },
        threads: connections,
        fresh: true,
        only: Some(&["native", "pirn-run", "jdk-virtual"]),
        driver: Box::new(Served {
            connections,
            ramp_ms,
            measure_ms,
            echo: false,
        }),
        ..server(
            Program::JavaServer,
            "serve",
            &[("delay_ms", delay_ms), ("connections", connections)],
        )
    };
    Workload {
        name: "run-server",
        about: "the JDK's HTTP server, a thread per request: platform threads natively and under pirn run, and the JDK's virtual threads; with requests that wait 1 s",
        sources: &[],
        rounds: 2,
        cases: sizes.iter().map(of).collect(),
    }
}

pub fn few(cx: &Context) -> Workload {
    let times = |call, name: &str| Case {
        name: name.into(),
        ..run(
            Program::Own,
            call,
            &[("times", cx.size.pick(200, 3))],
            both("start", "ms/start").into(),
        )
    };
    let numbers = cx.size.pick(10_000_000, 1000);
    Workload {
        name: "run-few",
        about: "programs with one thread or few, which must lose nothing: starts of true, Python that computes, redis-server",
        sources: &[],
        rounds: 3,
        cases: vec![
            times("run-true", "true"),
            times("run-children", "true, by a shell"),
            Case {
                name: "Python".into(),
                needs: &["python3"],
                ..run(
                    Program::Own,
                    "run-compute",
                    &[("numbers", numbers)],
                    both("wall", "s").into(),
                )
            },
            redis(cx),
        ],
    }
}

fn redis(cx: &Context) -> Case {
    let requests = cx.size.pick(100_000, 100);
    Case {
        name: "redis-server".into(),
        needs: &["redis-server"],
        fresh: true,
        cores: Cores::Half,
        driver: Box::new(Redis),
        ..run(
            Program::Own,
            "run-redis",
            &[("clients", 50), ("requests", requests)],
            vec![
                higher("SET", "requests/s"),
                higher("GET", "requests/s"),
                lower("processor", "µs/request"),
            ],
        )
    }
}
