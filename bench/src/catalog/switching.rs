//! Workloads that are all about starting threads and going from one to another.

use super::{Case, Context, Cores, Params, Workload, case, lower, memory_of};
use crate::results::number;

/// The peers that have structured concurrency, or what is used for it.
const SCOPES: &[&str] = &[
    "pirn",
    "jdk-virtual",
    "go",
    "tokio",
    "may",
    "jdk-platform",
    "os-threads",
    "rayon",
];

pub fn spawn(cx: &Context) -> Workload {
    let (many, few) = cx.size.pick((100_000, 5_000), (100, 20));
    let params = [("burst", many), ("inside", many), ("main", few)];
    let metrics = vec![
        lower("burst", "ns/thread").goal(150.0),
        lower("join inside", "ns/thread").goal(200.0),
        lower("join main", "ns/thread").goal(1000.0),
    ];
    Workload {
        name: "spawn",
        about: "starts short threads: all at once; one after the other with join, from a thread and from main",
        sources: &[
            "burst: JDK 290 ns, Go 470, tokio 640, may 2,000; join from main: JDK 60,000 ns, Go 450, tokio 28,000, may 38,000 (two cores)",
            "3,000 platform threads in 210 ms, 200,000 fibers in the same time (c5.2xlarge)",
        ],
        rounds: 4,
        cases: vec![Case {
            for_os_threads: Params(vec![("burst", cx.size.pick(5_000, 100)), ("inside", few)]),
            memory: 2 << 30,
            ..case("spawn", &params, metrics)
        }],
    }
}

pub fn r#yield(cx: &Context) -> Workload {
    let metrics = vec![
        lower("yield", "ns/yield").goal(30.0),
        lower("switch", "ns/switch").own_work(),
    ];
    Workload {
        name: "yield",
        about: "two threads on one core yield to each other",
        sources: &["JDK 283 ns, Go 131, tokio 240, may 20 (two cores)"],
        rounds: 5,
        cases: vec![Case {
            for_os_threads: Params(vec![("yields", cx.size.pick(100_000, 1_000))]),
            cores: Cores::One,
            ..case(
                "yield",
                &[("yields", cx.size.pick(500_000, 1_000))],
                metrics,
            )
        }],
    }
}

pub fn pingpong(cx: &Context) -> Workload {
    let metrics = vec![
        lower("channel", "ns/round trip").goal(250.0),
        lower("park", "ns/round trip").goal(120.0),
    ];
    Workload {
        name: "pingpong",
        about: "two threads pass a number to and fro, by channel and by park and unpark",
        sources: &[
            "channel: JDK 550 ns, Go 343, tokio 336, may 380 (two cores)",
            "250,000 request/replies: threads 4.7 s, fibers 1.5 s",
        ],
        rounds: 5,
        cases: vec![Case {
            for_os_threads: Params(vec![("trips", cx.size.pick(5_000, 100))]),
            ..case(
                "pingpong",
                &[("trips", cx.size.pick(200_000, 100))],
                metrics,
            )
        }],
    }
}

pub fn skynet(cx: &Context) -> Workload {
    let threads = cx.size.pick(1_000_000, 1_000);
    Workload {
        name: "skynet",
        about: "a tree of 1,111,111 threads, ten under each, adds up a million numbers",
        sources: &[],
        rounds: 3,
        cases: vec![Case {
            threads: threads / 5,
            memory: memory_of(threads / 5),
            ..case("skynet", &[("threads", threads)], vec![lower("wall", "s")])
        }],
    }
}

pub fn chain(cx: &Context) -> Workload {
    let threads = cx.size.pick(1_000_000, 300);
    Workload {
        name: "chain",
        about: "a row of a million threads, each adds one to what its neighbour sends and passes it on",
        sources: &["a chain of 1 M actors: 4.07 s"],
        rounds: 1,
        cases: vec![Case {
            threads,
            memory: memory_of(threads),
            ..case("chain", &[("threads", threads)], vec![lower("wall", "s")])
        }],
    }
}

pub fn mutex(cx: &Context) -> Workload {
    let of = |threads: u64| {
        let ops = cx.size.pick(1_000_000, 2_000).max(threads);
        Case {
            name: match threads {
                1 => "1 thread".into(),
                n => format!("{} threads", number(n as f64)),
            },
            x: Some(threads as f64),
            threads,
            memory: memory_of(threads),
            ..case(
                "mutex",
                &[("threads", threads), ("ops", ops / threads * threads)],
                vec![lower("lock", "ns/lock")],
            )
        }
    };
    let counts: &[u64] = cx.size.pick(&[1, 2, 100, 10_000], &[1, 20]);
    Workload {
        name: "mutex",
        about: "threads add one to a number under one mutex, a million times in all",
        sources: &[],
        rounds: 3,
        cases: counts.iter().map(|&threads| of(threads)).collect(),
    }
}

pub fn scope(cx: &Context) -> Workload {
    let os_threads = [("two", 500), ("many", 2), ("first", 10)];
    let (forks, tasks) = cx.size.pick((1000, 100), (20, 10));
    let params = [
        ("two", cx.size.pick(100_000, 20)),
        ("many", cx.size.pick(100, 3)),
        ("forks", forks),
        ("first", cx.size.pick(200, 3)),
        ("tasks", tasks),
    ];
    let metrics = vec![
        lower("two", "ns/scope"),
        lower("many", "ns/fork"),
        lower("first", "µs/scope"),
    ];
    Workload {
        name: "scope",
        about: "structured concurrency: two forks and a join; a thousand; the first result of a hundred, which cancels the rest",
        sources: &[],
        rounds: 5,
        cases: vec![Case {
            for_os_threads: Params(cx.size.pick(os_threads.to_vec(), Vec::new())),
            threads: forks.max(tasks),
            memory: memory_of(forks.max(tasks)),
            only: Some(SCOPES),
            ..case("scope", &params, metrics)
        }],
    }
}
