use super::*;

fn names() -> Vec<(String, String, Vec<String>)> {
    let machine = Machine::this();
    let context = Context {
        size: Size::Quick,
        machine: &machine,
        budget: 1 << 30,
        iterations_per_second: 1000,
    };
    let all = chosen(&[], &context).unwrap();
    let names = |w: &Workload, c: &Case| {
        let metrics = c.metrics.iter().map(|m| m.name.clone()).collect();
        (w.name.to_owned(), c.name.clone(), metrics)
    };
    let cases = |w: Workload| w.cases.iter().map(|c| names(&w, c)).collect::<Vec<_>>();
    all.into_iter().flat_map(cases).collect()
}

#[test]
fn names_of_workloads_and_cases_and_metrics_are_unique() {
    let mut all: Vec<String> = Vec::new();
    for (workload, case, metrics) in names() {
        assert!(!metrics.is_empty(), "{workload} {case}");
        all.extend(metrics.iter().map(|m| format!("{workload}/{case}/{m}")));
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn values_for_os_threads_replace_those_for_others() {
    let params = Params(vec![("a", 1), ("b", 2)]);
    let with = params.with(&Params(vec![("b", 3)]));
    assert_eq!(with, Params(vec![("a", 1), ("b", 3)]));
}

#[test]
fn a_number_of_threads_is_cut_to_what_fits() {
    let mut params = Params(vec![("threads", 200_000), ("ms", 7)]);
    params.lower("threads", 12_000);
    params.lower("ms", 12_000);
    assert_eq!(params, Params(vec![("threads", 12_000), ("ms", 7)]));
}

#[test]
fn parameters_are_set_by_name() {
    let mut params = Params(vec![("a", 1), ("b", 2)]);
    assert!(params.set(&[("b".into(), 7), ("c".into(), 8)]));
    assert!(!params.set(&[("c".into(), 8)]));
    assert_eq!(params.arguments().collect::<Vec<_>>(), ["a=1", "b=7"]);
}
