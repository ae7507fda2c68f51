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
    assert_eq!(chosen("for=orders"), [7]);
    assert_eq!(chosen("for=*Buy*|nobody"), [7]);
    assert_eq!(chosen("for=order"), [0; 0]);
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
fn a_bare_word_is_in_the_name_or_in_the_stack() {
    assert_eq!(chosen("two"), [4]);
    assert_eq!(chosen("order"), [7]);
    assert_eq!(chosen("recv").len(), 13);
    assert_eq!(chosen("recv,scope=8"), [3, 6, 9, 12]);
    assert_eq!(chosen("wo?"), [0; 0]);
    assert_eq!(chosen("waiting"), [0; 0], "a word is no state");
}

#[test]
fn what_is_chosen_is_a_dump_of_its_own() {
    let dump = everything();
    let names = names(&dump);
    for conditions in ["state=waiting", "wait=mutex|sleep", "scope=8", "two"] {
        let filter: Filter = conditions.parse().unwrap();
        let chosen = filter.choose(&dump, &names).unwrap();
        let mut left = dump.clone();
        filter.apply(&mut left, &names).unwrap();
        assert_eq!(chosen.threads, left.threads, "{conditions}");
        assert_eq!(chosen.totals.listed, left.totals.listed, "{conditions}");
    }
}

#[test]
fn of_a_cut_dump_the_listed_threads_are_chosen() {
    let mut dump = everything();
    dump.groups.iter_mut().for_each(|group| group.count = 10);
    (dump.totals.listed, dump.totals.cut) = (140, 126);
    let names = names(&dump);
    let chosen = |filter: &str| filter.parse::<Filter>().unwrap().choose(&dump, &names);
    let by_threads = chosen("scope=8").unwrap();
    assert_eq!((by_threads.threads.len(), by_threads.totals.listed), (4, 4));
    let by_groups = chosen("wait=mutex|futex").unwrap();
    assert_eq!((by_groups.threads.len(), by_groups.totals.listed), (2, 20));
    dump.totals.cut = 0;
    let filter = Filter::id(2);
    assert!(filter.choose(&dump, &names).is_err(), "only examples");
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
