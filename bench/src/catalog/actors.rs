//! Workloads of actors.

use super::{Case, Context, Metric, Workload, case, lower, memory_of};
use crate::drivers::Parked;
use crate::results::number;

/// The peers that have actors, or what is written by hand in their place.
const ACTORS: &[&str] = &[
    "pirn",
    "go",
    "tokio",
    "pirn-process",
    "ractor",
    "kameo",
    "actix",
    "erlang",
    "fibry",
];

pub fn actors(cx: &Context) -> Workload {
    let mut cases = vec![messages(cx), asks(cx), create(cx)];
    let idle: &[u64] = cx.size.pick(&[100_000, 1_000_000], &[100, 1_000]);
    cases.extend(idle.iter().map(|&count| idle_case(count)));
    cases.extend([chain(cx), skynet(cx)]);
    Workload {
        name: "actors",
        about: "actors: messages, asks, lives, memory, rows and trees of them; in libraries, languages, and by hand",
        sources: &[
            "messages from one to one, sending alone: Fibry 8.5 M/s on threads, 7.5 M/s on fibers; 250,000 asks: 4.7 and 1.5 s (c5.2xlarge)",
            "a tell to 100 actors in turn: actix 204 ns, kameo 512, ractor 532; creating one: actix 950 ns, kameo 4,400, ractor 6,200 (8-core i9)",
            "an idle one: Erlang 2,616 B, Akka 430 B (claims of their authors)",
            "skynet of a million: Proto.Actor 0.31 to 1.5 s, Erlang 0.75 s; a chain of a million: Akka 21.5 s, actr 4.07 s",
        ],
        rounds: 3,
        cases,
    }
}

fn of(
    call: &'static str,
    name: &str,
    params: &[(&'static str, u64)],
    metrics: Vec<Metric>,
) -> Case {
    Case {
        name: name.into(),
        only: Some(ACTORS),
        ..case(call, params, metrics)
    }
}

fn messages(cx: &Context) -> Case {
    let (one, many) = cx.size.pick((10_000_000, 4_000_000), (1_000, 400));
    let metrics = vec![
        lower("1 to 1", "ns/message").goal(40.0),
        lower("4 to 4", "ns/message"),
        lower("4 to 1", "ns/message").goal(80.0),
    ];
    Case {
        // Of mailboxes that are not bounded, when the senders are faster.
        memory: one * 200,
        ..of(
            "actor-messages",
            "messages",
            &[("messages", one), ("many", many)],
            metrics,
        )
    }
}

fn asks(cx: &Context) -> Case {
    let params = [
        ("crowd", cx.size.pick(100, 10)),
        ("tells", cx.size.pick(1_000_000, 500)),
        ("asks", cx.size.pick(250_000, 100)),
        ("turns", cx.size.pick(250_000, 101)),
        ("each", cx.size.pick(10_000, 10)),
    ];
    let metrics = vec![
        lower("tell", "ns/message").goal(60.0),
        lower("ask", "ns/ask").goal(300.0),
        lower("in turn", "ns/message").goal(150.0),
        lower("replies", "ns/reply").goal(120.0),
    ];
    Case {
        memory: 1 << 30,
        ..of("actor-asks", "asks", &params, metrics)
    }
}

fn create(cx: &Context) -> Case {
    let actors = cx.size.pick(100_000, 100);
    let metrics = vec![
        lower("create", "ns/actor").goal(150.0),
        lower("create and end", "ns/actor").goal(300.0),
    ];
    Case {
        memory: memory_of(actors),
        ..of("actor-create", "lives", &[("actors", actors)], metrics)
    }
}

fn idle_case(actors: u64) -> Case {
    let bytes = lower("bytes", "B/actor").goal(300.0);
    let name = format!("{} idle", number(actors as f64));
    Case {
        x: Some(actors as f64),
        fresh: true,
        memory: memory_of(actors),
        driver: Box::new(Parked { at: "idle" }),
        ..of(
            "actor-idle",
            &name,
            &[("actors", actors)],
            vec![
                bytes,
                lower("of it kernel", "B/actor").part(),
                lower("ask", "ns/actor"),
            ],
        )
    }
}

fn chain(cx: &Context) -> Case {
    let row = cx.size.pick(100_000, 100);
    Case {
        memory: memory_of(row),
        ..of(
            "actor-chain",
            "chain",
            &[("row", row)],
            vec![lower("wall", "s").goal(0.1)],
        )
    }
}

fn skynet(cx: &Context) -> Case {
    let leaves = cx.size.pick(100_000, 1_000);
    Case {
        memory: memory_of(leaves),
        ..of(
            "actor-skynet",
            "skynet",
            &[("leaves", leaves)],
            vec![lower("wall", "s").goal(0.03)],
        )
    }
}
