use super::{few, make_with, spawn};
use crate::thread::JoinHandle;
use pirn_observe::metrics::{Line, snapshot_of};
use pirn_rt::sched::runtime::{Runtime, RuntimeSettings};
use std::time::Duration;

/// Makes a runtime of its own, so that other tests do not count.
fn start(parallelism: usize) -> &'static Runtime {
    let runtime = make_with(RuntimeSettings {
        spares: 1,
        spin_ns: 20_000,
        max_blocking_threads: 4,
        ..few(parallelism)
    });
    pirn_rt::carriers::start(runtime).unwrap();
    runtime
}

#[test]
fn each_runtime_counts_for_itself() {
    let (one, two) = (start(1), start(2));
    let in_one = Vec::from_iter((0..50).map(|i| spawn(one, move || i)));
    let in_two = Vec::from_iter((0..20).map(|i| spawn(two, move || i)));
    let sum = |handles: Vec<JoinHandle<i32>>| -> i32 {
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap())
            .sum()
    };
    assert_eq!((sum(in_one), sum(in_two)), (50 * 49 / 2, 20 * 19 / 2));
    for (runtime, threads) in [(one, 50), (two, 20)] {
        // A thread is counted as ended after its joiner has been told.
        let metrics = loop {
            let metrics = snapshot_of(runtime);
            if metrics["ended"] == threads {
                break metrics;
            }
            std::thread::yield_now();
        };
        assert_eq!(metrics["started"], threads);
        assert_eq!(metrics.sum("threads"), 0);
        assert!(metrics["mounts"] >= threads);
        assert_eq!(metrics["stack_slots.used"], 0);
    }
}

#[test]
fn numbers_are_seconds_without_needless_digits() {
    let metrics = snapshot_of(start(1));
    let text = metrics.to_prometheus();
    for line in [
        "pirn_schedule_latency_seconds_bucket{le=\"0.000000256\"} 0",
        "pirn_schedule_latency_seconds_bucket{le=\"1.073741824\"} 0",
        "pirn_schedule_latency_seconds_bucket{le=\"+Inf\"} 0",
        "pirn_schedule_latency_seconds_sum 0",
        "pirn_threads{state=\"waiting\"} 0",
        "pirn_parallelism 1",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
}

#[test]
fn every_metric_has_one_header_and_some_values() {
    let text = snapshot_of(start(1)).to_prometheus();
    let mut names = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            names.push((rest.split(' ').next().unwrap(), 0));
        } else if !line.starts_with('#') {
            let (name, values) = names.last_mut().unwrap();
            assert!(line.starts_with(*name), "{line} after {name}");
            assert!(
                line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(),
                "{line}"
            );
            *values += 1;
        }
    }
    assert!(
        names.len() > 20 && names.iter().all(|(_, values)| *values > 0),
        "{names:?}"
    );
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn a_line_of_json_has_rates_of_what_was_counted_meanwhile() {
    let runtime = start(1);
    let first = Line::new(snapshot_of(runtime), Duration::from_secs(1), None);
    for handle in Vec::from_iter((0..10).map(|_| spawn(runtime, || ()))) {
        handle.join().unwrap();
    }
    let after = snapshot_of(runtime);
    let second = Line::new(after, Duration::from_secs(2), Some(&first)).to_string();
    assert!(
        first.to_string().contains("\"rates\":{\"started\":0.0,"),
        "{first}"
    );
    assert!(second.contains("\"counters\":{\"started\":10,"), "{second}");
    assert!(second.contains("\"rates\":{\"started\":5.0,"), "{second}");
    assert!(second.contains("\"number\":0,\"state\":\""), "{second}");
    assert_eq!(second.lines().count(), 1);
    let (open, close) = (second.matches('{').count(), second.matches('}').count());
    assert_eq!(open, close);
}

#[test]
fn every_number_has_one_name() {
    let metrics = snapshot_of(start(1));
    for (name, part, number) in metrics.iter() {
        let full = match part {
            "" => name.to_owned(),
            part => format!("{name}.{part}"),
        };
        assert_eq!(metrics.get(&full), Some(number), "{full}");
    }
    let states = metrics.iter().filter(|(name, ..)| *name == "threads");
    assert_eq!(states.count(), 4);
    assert_eq!(
        [metrics.get("threads"), metrics.get("threads.x")],
        [None; 2]
    );
}
