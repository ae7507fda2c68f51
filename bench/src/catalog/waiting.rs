//! Workloads in which threads wait for time to pass.

use super::{Case, Context, Params, Workload, case, lower, memory_of};
use crate::drivers::{Itself, Usage, WholeProcess};
use crate::results::number;

pub fn sleepers(cx: &Context) -> Workload {
    let params = cx.size.pick(
        [("threads", 100_000), ("ms", 1000)],
        [("threads", 100), ("ms", 50)],
    );
    let threads = params[0].1;
    let case = |name: &str, metric, goal| Case {
        name: name.into(),
        threads,
        memory: memory_of(threads),
        ..case("sleepers", &params, vec![lower(metric, "s").goal(goal)])
    };
    Workload {
        name: "sleepers",
        about: "100,000 threads sleep 1 s, then print a line to a pipe",
        sources: &[
            "JDK 1.49 s, Go 1.11, tokio 1.11, may dies (two cores)",
            "whole process: platform 18.77 s, cached pool 11.52, virtual 2.62; warm: 5.600, 3.887, 1.098 (i9-11900H)",
        ],
        rounds: 2,
        cases: vec![
            Case {
                driver: Box::new(Itself),
                ..case("warm", "wall", 1.06)
            },
            Case {
                fresh: true,
                driver: Box::new(WholeProcess),
                ..case("cold", "whole process", 1.5)
            },
        ],
    }
}

pub fn database(cx: &Context) -> Workload {
    let (tasks, permits, ms) = cx.size.pick((20_000, 100, 8), (50, 10, 2));
    let floor = (tasks / permits * ms) as f64 / 1000.0;
    let name = format!("{} tasks, floor {floor} s", number(tasks as f64));
    Workload {
        name: "database",
        about: "tasks hold one of 100 permits for 8 ms each",
        sources: &["400,000 tasks: floor 32.0 s"],
        rounds: 2,
        cases: vec![Case {
            name,
            threads: tasks,
            memory: memory_of(tasks),
            ..case(
                "database",
                &[("tasks", tasks), ("permits", permits), ("ms", ms)],
                vec![lower("wall", "s")],
            )
        }],
    }
}

pub fn timers(cx: &Context) -> Workload {
    let (threads, waits) = cx.size.pick((1_000_000, 50_000), (100, 100));
    Workload {
        name: "timers",
        about: "a million threads wait with a time limit and are woken before it; two more wait and wake each other meanwhile",
        sources: &[],
        rounds: 1,
        cases: vec![Case {
            threads,
            memory: memory_of(threads),
            ..case(
                "timers",
                &[("threads", threads), ("waits", waits)],
                vec![
                    lower("arm", "ns/timer"),
                    lower("rearm", "ns/timed wait"),
                    lower("cancel", "ns/timer"),
                ],
            )
        }],
    }
}

pub fn random_numbers(cx: &Context) -> Workload {
    let (tasks, times, ms) = cx.size.pick((1000, 3, 1000), (20, 3, 20));
    let params = [("tasks", tasks), ("times", times), ("ms", ms)];
    Workload {
        name: "random-numbers",
        about: "1,000 tasks draw a random number once a second: what of the system that takes",
        sources: &[
            "1,000 × 120 times: platform about 1,000 OS threads, 150 MB; virtual about 30 threads, 20 to 60 MB",
        ],
        rounds: 1,
        cases: vec![Case {
            for_os_threads: Params::default(),
            fresh: true,
            threads: tasks,
            driver: Box::new(Usage),
            ..case(
                "random-numbers",
                &params,
                vec![
                    lower("OS threads", "threads"),
                    lower("memory", "MiB"),
                    lower("processor", "ms/s"),
                ],
            )
        }],
    }
}
