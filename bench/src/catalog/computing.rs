//! Workloads that compute.

use super::{Case, Context, Cores, Workload, case, higher, lower};

pub fn cpu_bound(cx: &Context) -> Workload {
    let cores = cx.machine.cores as u64;
    let wall = case(
        "cpu-bound",
        &[
            ("tasks", cores + 1),
            ("iterations", cx.iterations(cx.size.pick(300, 5))),
        ],
        vec![lower("wall", "s")],
    );
    let ticker = case(
        "ticker",
        &[
            ("tasks", 2 * cores),
            ("iterations", cx.iterations(cx.size.pick(250, 10))),
        ],
        vec![lower("p50", "ms"), lower("p99", "ms"), lower("max", "ms")],
    );
    let crowd = case(
        "ticker",
        &[
            ("tasks", 100),
            ("iterations", cx.iterations(cx.size.pick(20, 1))),
        ],
        vec![lower("p50", "ms"), lower("p99", "ms"), lower("max", "ms")],
    );
    Workload {
        name: "cpu-bound",
        about: "one task more than cores computes; a 1 ms ticker while others compute: twice as many as cores, and 100",
        sources: &["cores+1 tasks of T: virtual 2 T, platform (cores+1)/cores T"],
        rounds: 2,
        cases: vec![
            Case {
                name: "cores + 1 tasks of 0.3 s".into(),
                ..wall
            },
            Case {
                name: "ticker".into(),
                ..ticker
            },
            Case {
                name: "ticker, 100 tasks".into(),
                ..crowd
            },
        ],
    }
}

pub fn hogs(cx: &Context) -> Workload {
    let ms = cx.size.pick(1000, 50);
    let of = |kind, tasks: u64, name: &str| Case {
        name: format!("{tasks} threads {name}"),
        only: Some(&["pirn", "os-threads"]),
        ..case(
            "hogs",
            &[("tasks", tasks), ("ms", ms), ("kind", kind)],
            vec![
                lower("p99", "ms"),
                higher("least", "of the mean"),
                higher("work", "pieces/ms"),
            ],
        )
    };
    let few = 2 * cx.machine.cores as u64;
    Workload {
        name: "hogs",
        about: "threads compute, allocate, or fill memory by the C library, for a second; how late a 1 ms ticker is, and the work of the thread that did least",
        sources: &[],
        rounds: 3,
        cases: vec![
            of(0, few, "compute"),
            of(0, 100, "compute"),
            of(1, few, "allocate"),
            of(2, few, "fill memory"),
        ],
    }
}

pub fn wait_and_hurry(cx: &Context) -> Workload {
    // A tenth of the source's times.
    let (wait, hurry) = cx.size.pick((200, 185), (10, 5));
    let of = |tasks: u64, cores, name: &str| Case {
        name: name.into(),
        cores,
        ..case(
            "wait-and-hurry",
            &[
                ("tasks", tasks),
                ("ms", wait),
                ("iterations", cx.iterations(hurry)),
            ],
            vec![lower("wall", "s")],
        )
    };
    Workload {
        name: "wait-and-hurry",
        about: "tasks wait 200 ms, then compute 185 ms",
        sources: &[
            "with 2 s and 1.85 s, pool against virtual: 1 carrier, 2 tasks 7.69 → 5.72 s; 2 carriers, 6 tasks 11.44 → 7.66 s",
        ],
        rounds: 2,
        cases: vec![
            of(2, Cores::One, "2 tasks, 1 core"),
            of(6, Cores::All, "6 tasks, all cores"),
        ],
    }
}

pub fn malloc(cx: &Context) -> Workload {
    let pairs = cx.size.pick(2_000_000, 10_000);
    let metrics = vec![lower("64 B", "ns/pair"), lower("mixed", "ns/pair")];
    Workload {
        name: "malloc",
        about: "allocates and frees: the same code on a virtual and on a platform thread",
        sources: &[],
        rounds: 5,
        cases: vec![Case {
            only: Some(&["pirn", "os-threads"]),
            ..case("malloc", &[("pairs", pairs)], metrics)
        }],
    }
}
