use super::*;

fn outcome(kind: &'static str) -> Outcome {
    let mut latencies = Histogram::new(3).unwrap();
    for micros in [1_000, 1_000, 1_000, 5_000] {
        latencies.record(micros).unwrap();
    }
    let usage = |mib: u64, threads| Usage {
        resident: mib << 20,
        page_tables: 0,
        threads,
    };
    Outcome {
        kind,
        users: 20_000,
        latencies,
        errors: Errors {
            count: 1_234,
            first: vec![("connect: refused".into(), 1_000)],
        },
        elapsed: Duration::from_millis(2),
        before: usage(10, 1),
        peak: usage(110, 16_384),
        memory: None,
    }
}

#[test]
fn the_table_has_a_row_for_each_value_and_a_column_for_each_run() {
    let table = table(&[outcome("virtual threads"), outcome("platform threads")]);
    let row = |name: &str| {
        let line = table.lines().find(|line| line.contains(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in\n{table}"));
        let cells: Vec<_> = line.split(['│', '┆']).map(str::trim).collect();
        assert_eq!(cells[2], cells[3], "both runs were the same");
        cells[2].to_owned()
    };
    assert_eq!(row("users"), "20,000");
    assert_eq!(row("requests answered"), "4");
    assert_eq!(row("errors"), "1,234");
    assert_eq!(row("throughput"), "2,000/s");
    assert_eq!(row("mean"), "2.0 ms");
    assert_eq!(row("p50"), "1.0 ms");
    assert_eq!(row("max"), "5.0 ms");
    assert_eq!(row("OS threads"), "16,384");
    assert_eq!(row("resident memory"), "110.00 MiB");
    assert_eq!(row("this run's"), "100.00 MiB");
    assert!(table.contains("virtual threads ┆ platform threads"));
}

#[test]
fn a_run_without_an_answer_has_no_latency() {
    let mut empty = outcome("virtual threads");
    empty.latencies.reset();
    empty.elapsed = Duration::ZERO;
    let column = empty.column();
    assert_eq!(&column[3..6], ["0/s", "-", "-"]);
}

#[test]
fn the_first_errors_are_listed_with_their_counts() {
    let mut some = outcome("virtual threads");
    assert_eq!(
        errors(&some),
        "errors on virtual threads:\n  1,000 x connect: refused\n  234 of other kinds\n"
    );
    some.errors = Errors::default();
    assert_eq!(errors(&some), "");
}

#[test]
fn memory_is_shown_by_what_it_is_for() {
    let shown = memory(&pirn::metrics::snapshot());
    assert_eq!(shown.lines().count(), 4);
    for part in [
        "stacks ",
        "thread-locals ",
        "records ",
        "timers ",
        "page tables ",
    ] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
}
