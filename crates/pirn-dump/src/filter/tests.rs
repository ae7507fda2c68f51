//! What filters choose.

use super::*;
use crate::samples::{everything, names};

fn chosen(filter: &str) -> Vec<u64> {
    let mut dump = everything();
    let names = names(&dump);
    filter
        .parse::<Filter>()
        .unwrap()
        .apply(&mut dump, &names)
        .unwrap();
    let counted: u64 = dump.groups.iter().map(|group| group.count).sum();
    assert_eq!(counted, dump.threads.len() as u64);
    assert_eq!(dump.totals.listed, counted);
    dump.threads.iter().map(|thread| thread.id).collect()
}

#[test]
fn each_condition_chooses() {
    assert_eq!(chosen("").len(), 14);
    assert_eq!(chosen("state=new"), [1]);
    assert_eq!(chosen("state=waiting").len(), 13);
    assert_eq!(chosen("wait=mutex|sleep"), [2, 7]);
    assert_eq!(chosen("wait=lock"), [2, 3]);
    assert_eq!(chosen("name=two*"), [4]);
    assert_eq!(chosen("name=two"), [0; 0]);
    assert_eq!(chosen("name=??nul*"), [0; 0]);
    assert_eq!(chosen("name=?nul*"), [7]);
    assert_eq!(chosen("frame=recv").len(), 13);
    assert_eq!(chosen("frame=recv*").len(), 13);
    assert_eq!(chosen("frame=ecv*"), [0; 0]);
    assert_eq!(chosen("frame=nothing"), [0; 0]);
    assert_eq!(chosen("place=.rs:12").len(), 9);
    assert_eq!(chosen("place=.rs:12:5").len(), 9);
    assert_eq!(chosen("place=.rs:1"), [0; 0]);
    assert_eq!(chosen("scope=8"), [3, 6, 9, 12]);
    assert_eq!(chosen("scope=orders*"), [2, 5, 8, 11, 14]);
    assert_eq!(chosen("id=3|#4"), [3, 4]);
    assert_eq!(chosen("object=0x7f0000001000"), [2]);
    assert_eq!(chosen("object=12"), [4]);
    assert_eq!(chosen("age=1s"), [1, 3, 5, 7, 9, 11, 13]);
    assert_eq!(chosen("age=1001ms"), [0; 0]);
}

#[test]
fn all_conditions_must_hold() {
    assert_eq!(chosen("state=waiting, age=1s ,scope=8"), [3, 9]);
    assert_eq!(chosen("state=new,wait=mutex"), [0; 0]);
}

#[test]
fn without_all_threads_groups_are_chosen() {
    let mut dump = everything();
    dump.groups.iter_mut().for_each(|group| group.count = 10);
    dump.totals.listed = 140;
    let names = names(&dump);
    let filter: Filter = "wait=mutex|futex".parse().unwrap();
    filter.apply(&mut dump, &names).unwrap();
    assert_eq!(
        (dump.totals.listed, dump.totals.by_state),
        (20, [0, 0, 0, 20, 0])
    );
    let examples: Vec<u64> = dump
        .groups
        .iter()
        .map(|group| dump.threads[group.examples[0] as usize].id)
        .collect();
    assert_eq!(examples, [2, 3]);
    let error = Filter::id(2).apply(&mut dump, &names).unwrap_err();
    assert!(error.to_string().contains("only some threads"), "{error}");
}

#[test]
fn errors_say_what_there_is() {
    let error = |text: &str| text.parse::<Filter>().unwrap_err().to_string();
    assert_eq!(
        error("waiting"),
        "the condition \"waiting\" has no `=`: name=conn*"
    );
    assert_eq!(error("state=asleep"), "there is no state \"asleep\"");
    assert!(error("nmae=x").starts_with("there is no condition \"nmae\": it is one of state, "));
    for text in [
        "id=x",
        "age=10",
        "age=s",
        "age=99999999999999999999s",
        "age=9999999999999h",
        "object=0xg",
    ] {
        error(text);
    }
}

#[test]
fn stars_stand_for_anything() {
    for (pattern, text, expected) in [
        ("*", "", true),
        ("a*c", "abbbc", true),
        ("a*c", "abbbcd", false),
        ("*b*b*", "abab", true),
        ("?", "", false),
        ("a?", "ab", true),
        ("", "", true),
        ("", "a", false),
    ] {
        assert_eq!(
            Pattern::whole(pattern).matches(text.as_bytes()),
            expected,
            "{pattern} {text}"
        );
    }
    // Not exponential.
    let long = vec![b'a'; 2_000];
    assert!(!Pattern::whole(&"a*".repeat(20)).matches(&[&long[..], b"b"].concat()[..19]));
    assert!(!Pattern::whole(&format!("{}c", "a*".repeat(500))).matches(&long));
}
