//! Workloads that are all about the memory that threads take.

use super::{Case, Context, Workload, case, higher, lower, memory_of};
use crate::drivers::{MostParked, Parked};
use crate::results::number;

pub fn parked(cx: &Context) -> Workload {
    let counts: &[u64] = cx.size.pick(&[10_000, 100_000, 1_000_000], &[100, 1_000]);
    let mut cases: Vec<Case> = counts.iter().map(|&count| parked_case(count)).collect();
    cases.push(most(cx));
    Workload {
        name: "parked",
        about: "threads that only wait: bytes of each, page tables and the kernel's share included, and how many fit",
        sources: &[
            "bytes each at a million: JDK 943, Go 2,726, tokio 447, may dies at 30,000 (two cores)",
            "most threads parked: 32,539 platform, 14,625,956 virtual (i9-11900H, 64 GB)",
        ],
        rounds: 1,
        cases,
    }
}

fn parked_case(count: u64) -> Case {
    // 4.7 KiB.
    let bytes = lower("bytes", "B/thread");
    let bytes = if count == 1_000_000 {
        bytes.goal(4813.0)
    } else {
        bytes
    };
    Case {
        name: format!("{} threads", number(count as f64)),
        x: Some(count as f64),
        fresh: true,
        threads: count,
        memory: memory_of(count),
        driver: Box::new(Parked { at: "parked" }),
        ..case(
            "parked",
            &[("step", count)],
            vec![
                bytes,
                lower("of it kernel", "B/thread").part(),
                lower("spawn", "ns/thread"),
                lower("wake", "ns/thread"),
            ],
        )
    }
}

fn most(cx: &Context) -> Case {
    let budget = cx.size.pick(cx.budget, 64 << 20);
    Case {
        name: format!("in {} MiB", budget >> 20),
        fresh: true,
        memory: budget + (1 << 30),
        driver: Box::new(MostParked { budget }),
        ..case(
            "parked",
            &[("step", cx.size.pick(10_000, 1_000))],
            vec![higher("most threads", "threads")],
        )
    }
}

pub fn deep(cx: &Context) -> Workload {
    let (threads, depth) = cx.size.pick((10_000, 1_000), (20, 50));
    Workload {
        name: "deep",
        about: "threads wait 1,000 calls deep, with the same locals in every language, then return; a 1 ms ticker beside them",
        sources: &[
            "20,000 threads: JDK 28 to 100 µs and 45 KB each, Go 36 µs and 51 KB (two cores)",
            "32,597 platform threads (114 KB heap + 257 KB stack each); 55,232 virtual (152 KB each) before a pause of 35 s",
        ],
        rounds: 1,
        cases: vec![Case {
            fresh: true,
            threads,
            memory: threads * depth * 300,
            driver: Box::new(Parked { at: "deep" }),
            ..case(
                "deep",
                &[("threads", threads), ("depth", depth)],
                vec![
                    lower("bytes", "B/thread"),
                    lower("sink", "µs/thread"),
                    lower("wake", "µs/thread"),
                    lower("pause", "ms").own_work(),
                ],
            )
        }],
    }
}
