use super::*;
use crate::report::example;

fn text(results: &Results) -> String {
    page(results).into_string()
}

#[test]
fn the_page_needs_nothing_else() {
    let page = text(&example::results());
    for outside in ["<script", "<link", "<img", "@import", "url(", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    // The name of the vector format is no address.
    let addresses = page.matches("://").count();
    assert_eq!(
        addresses,
        page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count()
    );
}

#[test]
fn losses_come_before_wins_and_those_before_the_workloads() {
    let page = text(&example::results());
    let at = |what: &str| {
        page.find(what)
            .unwrap_or_else(|| panic!("there is no {what}"))
    };
    assert!(at("id=\"losses\"") < at("id=\"wins\""));
    assert!(at("id=\"wins\"") < at("id=\"w-spawn\""));
    assert!(
        page.contains("<em>not yet explained</em>")
            && page.contains("main parks a platform thread")
    );
}

#[test]
fn text_is_escaped_wherever_it_comes_from() {
    let evil = "<b onclick=x>&\"'";
    let mut results = example::results();
    results.arguments = vec![evil.into()];
    results.machine.processor = evil.into();
    for info in &mut results.peers {
        (info.title, info.flags, info.version) = (evil.into(), evil.into(), Some(evil.into()));
        info.skipped = info.skipped.as_ref().map(|_| evil.into());
    }
    for workload in &mut results.workloads {
        (workload.name, workload.about, workload.sources) =
            (evil.into(), evil.into(), vec![evil.into()]);
        for case in &mut workload.cases {
            (case.name, case.parameters) = (evil.into(), evil.into());
            case.failures
                .iter_mut()
                .for_each(|failure| failure.why = evil.into());
            for metric in &mut case.metrics {
                (metric.metric.name, metric.metric.unit, metric.note) =
                    (evil.into(), evil.into(), Some(evil.into()));
                metric
                    .skipped
                    .iter_mut()
                    .for_each(|skip| skip.why = evil.into());
                metric
                    .rows
                    .iter_mut()
                    .for_each(|row| row.remark = Some(evil.into()));
            }
        }
    }
    let page = text(&results);
    assert!(!page.contains("<b onclick"), "a tag came through");
    assert!(!page.contains("\"#w-<"), "an attribute was left");
}

#[test]
fn one_peer_alone_is_shown_without_comparison() {
    let mut results = example::results();
    results.peers.truncate(1);
    for case in results.workloads.iter_mut().flat_map(|w| &mut w.cases) {
        case.failures.clear();
        for metric in &mut case.metrics {
            metric.rows.retain(|row| row.peer == crate::results::PIRN);
            metric.verdict = None;
        }
    }
    let page = text(&results);
    assert_eq!(page.matches("Nothing to compare").count(), 2);
    assert!(!page.contains("Nowhere"));
}
