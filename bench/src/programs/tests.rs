use super::*;
use crate::catalog::{Context, Size, chosen};
use crate::machine::Machine;

fn workloads(names: &[&str]) -> Vec<Workload> {
    let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
    let machine = Machine::this();
    let context = Context {
        size: Size::Quick,
        machine: &machine,
        budget: 1 << 30,
        iterations_per_second: 1,
    };
    chosen(&names, &context).unwrap()
}

#[test]
fn what_needs_a_program_that_is_not_there_is_left_out() {
    let mut workloads = workloads(&["spawn", "http"]);
    let lines = leave_out(&mut workloads, |program| program != "wrk");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("wrk is not installed"), "{lines:?}");
    assert!(lines[0].contains("http"), "{lines:?}");
    let left: Vec<_> = workloads.iter().map(|w| w.name).collect();
    assert_eq!(left, ["spawn"]);
}

#[test]
fn what_a_case_itself_needs_is_named_with_the_remedy() {
    let mut workloads = workloads(&["run-spawn", "run-few"]);
    let lines = leave_out(&mut workloads, |program| {
        !["cc", "python3"].contains(&program)
    });
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains("apt-get install gcc"), "{lines:?}");
    assert!(lines[1].contains("run-few Python"), "{lines:?}");
    assert_eq!(workloads.len(), 1);
}

#[test]
fn only_the_case_of_http_2_needs_h2load() {
    let mut workloads = workloads(&["http-server"]);
    let cases = workloads[0].cases.len();
    let lines = leave_out(&mut workloads, |program| program != "h2load");
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].contains("apt-get install nghttp2-client"),
        "{lines:?}"
    );
    assert_eq!(workloads[0].cases.len(), cases - 1);
}

#[test]
fn nothing_is_left_out_where_all_is_installed() {
    let mut workloads = workloads(&["spawn", "http"]);
    assert_eq!(leave_out(&mut workloads, |_| true), [""; 0]);
    assert_eq!(workloads.len(), 2);
}

#[test]
fn programs_are_looked_for_in_the_path() {
    assert!(is_installed("sh"));
    assert!(!is_installed("no-such-program"));
}
