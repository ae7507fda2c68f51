use super::*;
use crate::report::example;
use crate::results::{PIRN, PIRN_RUN};

#[test]
fn every_peer_has_its_own_colour() {
    let results = example::results();
    let colour = |name: &str| of_peer(&results, name);
    let mut seen: Vec<RGBColor> = Vec::new();
    for info in &results.peers {
        assert!(!seen.contains(&colour(&info.name)), "{}", info.name);
        seen.push(colour(&info.name));
    }
    assert_eq!(colour(PIRN), OURS.rgb());
    assert_eq!(colour(PIRN_RUN), OURS.rgb());
}

#[test]
fn there_are_enough_colours() {
    let names = crate::peers::KNOWN.iter().map(|known| known.name);
    assert!(names.filter(|name| !is_ours(name)).count() <= OTHERS.len());
}

#[test]
fn colours_are_replaced_as_the_pictures_spell_them() {
    let svg = crate::report::plots::charts(&example::results(), &example::results().workloads[0]);
    assert!(svg[0].svg.contains("fill=\"#0062BD\""), "{}", svg[0].svg);
    assert!(dark_rules().contains("svg [fill=\"#0062BD\"]{fill:#4EA3FF}"));
}
