use super::*;
use crate::catalog::{Better, Metric};
use crate::machine::Machine;
use crate::results::{CaseResults, Row, WorkloadResults};

/// A run with a case of one workload, which has these metrics of Pirn's.
fn run(parameters: &str, metrics: Vec<(Metric, f64)>) -> Results {
    let metrics = metrics.into_iter().map(|(metric, median)| {
        // The other peer is not compared.
        let rows = vec![
            Row::new(PIRN, vec![median], None),
            Row::new("go", vec![1.0], None),
        ];
        MetricResults::new(metric, rows, vec![])
    });
    Results {
        date: String::new(),
        arguments: Vec::new(),
        machine: Machine {
            processor: "P".into(),
            cores: 2,
            memory_kib: 1,
            kernel: "6".into(),
        },
        quick: false,
        peers: Vec::new(),
        workloads: vec![WorkloadResults {
            name: "spawn".into(),
            about: String::new(),
            sources: Vec::new(),
            run: None,
            cases: vec![CaseResults {
                name: "many".into(),
                x: None,
                parameters: parameters.into(),
                metrics: metrics.collect(),
                failures: Vec::new(),
            }],
        }],
    }
}

fn lower(name: &str, unit: &str) -> Metric {
    Metric::of(name, unit, Better::Lower)
}

fn higher(name: &str, unit: &str) -> Metric {
    Metric::of(name, unit, Better::Higher)
}

fn losses(before: f64, now: f64, metric: fn(&str, &str) -> Metric) -> usize {
    let [before, now] = [before, now].map(|median| run("n=1", vec![(metric("m", "s"), median)]));
    Comparison::new(&before, &now, 0.1).unwrap().losses()
}

#[test]
fn a_metric_loses_when_it_is_worse_by_more_than_the_loss() {
    assert_eq!(losses(100.0, 111.0, lower), 1);
    assert_eq!(losses(100.0, 109.0, lower), 0);
    assert_eq!(losses(100.0, 50.0, lower), 0);
    assert_eq!(losses(100.0, 89.0, higher), 1);
    assert_eq!(losses(100.0, 92.0, higher), 0);
    assert_eq!(losses(100.0, 500.0, higher), 0);
}

#[test]
fn errors_where_there_were_none_are_a_loss() {
    assert_eq!(losses(0.0, 0.0, lower), 0);
    assert_eq!(losses(0.0, 0.01, lower), 1);
    assert_eq!(losses(0.01, 0.0, lower), 0);
}

#[test]
fn each_metric_is_found_by_its_name() {
    let before = run("n=1", vec![(lower("a", "s"), 1.0), (lower("b", "s"), 9.0)]);
    let now = run(
        "n=1",
        vec![
            (lower("b", "s"), 9.0),
            (lower("c", "s"), 5.0),
            (lower("a", "s"), 2.0),
        ],
    );
    let comparison = Comparison::new(&before, &now, 0.1).unwrap();
    assert_eq!((comparison.compared(), comparison.losses()), (2, 1));
    let table = comparison.table();
    let lost: Vec<&str> = table.lines().filter(|line| line.contains("LOST")).collect();
    assert_eq!(lost.len(), 1, "{table}");
    assert!(
        lost[0].contains("spawn, many: a") && lost[0].contains("100.0%"),
        "{table}"
    );
}

#[test]
fn what_is_not_comparable_is_refused_or_told() {
    let (one, two) = (
        run("n=1", vec![(lower("m", "s"), 1.0)]),
        run("n=2", vec![(lower("m", "s"), 1.0)]),
    );
    let error = Comparison::new(&one, &two, 0.1).err().unwrap().to_string();
    assert!(error.contains("in common"), "{error}");

    let mut quick = run("n=1", vec![(lower("m", "s"), 1.0)]);
    quick.quick = true;
    let error = Comparison::new(&one, &quick, 0.1)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("--quick"), "{error}");

    let mut elsewhere = run("n=1", vec![(lower("m", "s"), 1.0)]);
    elsewhere.machine.cores = 64;
    let table = Comparison::new(&one, &elsewhere, 0.1).unwrap().table();
    assert!(
        table.contains("another number of cores: 2 then, 64 now"),
        "{table}"
    );
}
