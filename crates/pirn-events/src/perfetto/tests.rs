use super::*;
use crate::awaited::Awaited;
use crate::timeline::{Row, Thread};
use std::collections::BTreeMap;

/// A field of a message, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// Decodes a message by the rules of protocol buffers.
fn decoded(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let length = 1 + bytes.iter().take_while(|byte| **byte >= 0x80).count();
        let (value, rest) = bytes.split_at(length);
        *bytes = rest;
        value
            .iter()
            .rev()
            .fold(0, |all, byte| all << 7 | u64::from(byte & 0x7f))
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(value.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(value.to_vec())
            }
            other => panic!("a field of type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

/// Returns the messages in all fields of this number.
fn messages(message: &[(u64, Field)], number: u64) -> Vec<Vec<(u64, Field)>> {
    let fields = message.iter().filter(|(n, _)| *n == number);
    fields
        .map(|(_, field)| match field {
            Field::Bytes(bytes) => decoded(bytes),
            Field::Number(_) => panic!("field {number} is a number"),
        })
        .collect()
}

fn number(message: &[(u64, Field)], number: u64) -> Option<u64> {
    message.iter().find_map(|(n, field)| match field {
        Field::Number(value) if *n == number => Some(*value),
        _ => None,
    })
}

fn text(message: &[(u64, Field)], number: u64) -> Option<String> {
    message.iter().find_map(|(n, field)| match field {
        Field::Bytes(bytes) if *n == number => Some(String::from_utf8(bytes.clone()).unwrap()),
        _ => None,
    })
}

fn event(time: u64, row: usize, thread: u64, what: What) -> Event {
    Event {
        time,
        row,
        thread,
        what,
    }
}

fn switch(why: Why, next: u64) -> What {
    What::Switch { why, next }
}

/// Two threads on two carriers: one opens a scope, waits in it, and is woken by the other.
fn timeline() -> Timeline {
    let park = Why::Park(Awaited(12 << 16 | 10));
    let events = vec![
        event(1000, 0, 0, switch(Why::Mount, 71)),
        event(1100, 0, 71, What::ScopeOpened(5)),
        event(1200, 0, 71, switch(park, 0)),
        event(1300, 1, 0, switch(Why::Mount, 72)),
        event(1400, 1, 72, What::Wake(71)),
        event(1500, 0, 0, switch(Why::Mount, 71)),
        event(1600, 0, 71, What::ScopeClosed(5)),
        event(1700, 0, 71, switch(Why::Exit, 0)),
        event(1800, 1, 72, switch(Why::Yield, 72)),
    ];
    let names = [(71, Some("reader \"1\"".to_owned())), (72, None)];
    Timeline {
        pid: 42,
        program: "/usr/bin/a".into(),
        rows: vec![
            Row {
                carrier: Some(0),
                tid: 100,
            },
            Row {
                carrier: Some(1),
                tid: 101,
            },
        ],
        events,
        threads: BTreeMap::from(names.map(|(id, name)| {
            (
                id,
                Thread {
                    name,
                    ..Thread::default()
                },
            )
        })),
        begin: 1000,
        end: 1900,
        ..Timeline::default()
    }
}

fn packets() -> Vec<Vec<(u64, Field)>> {
    let mut trace = Vec::new();
    let summary = write(&timeline(), &mut trace).unwrap();
    assert_eq!((summary.switches, summary.wakes), (6, 1));
    assert!(!summary.without_details && summary.unnamed == 0);
    messages(&decoded(&trace), 1)
}

#[test]
fn carriers_are_processors() {
    let (first, second) = (FIRST_TID, FIRST_TID + 1);
    let mut switches = Vec::new();
    for packet in packets() {
        for bundle in messages(&packet, 1) {
            let cpu = number(&bundle, 1).unwrap();
            for event in messages(&bundle, 2) {
                let time = number(&event, 1).unwrap();
                for switch in messages(&event, 4) {
                    let [prev, state, next] = [2, 4, 6].map(|n| number(&switch, n).unwrap());
                    switches.push((time, cpu, prev, state, next));
                }
                for waking in messages(&event, 20) {
                    assert_eq!((time, number(&event, 2)), (1400, Some(second)));
                    assert_eq!(number(&waking, 2), Some(first));
                }
            }
        }
    }
    switches.sort();
    let expected = [
        (1000, 0, 0, 0, first),
        (1200, 0, first, 1, 0),
        (1300, 1, 0, 0, second),
        (1500, 0, 0, 0, first),
        (1700, 0, first, 16, 0),
        (1800, 1, second, 0, second),
    ];
    assert_eq!(switches, expected);
}

#[test]
fn threads_have_names() {
    let trees = packets()
        .into_iter()
        .flat_map(|packet| messages(&packet, 2));
    let threads: Vec<_> = trees.flat_map(|tree| messages(&tree, 2)).collect();
    let named = |tid| {
        let mut threads = threads.iter();
        let thread = threads
            .find(|thread| number(thread, 1) == Some(tid))
            .unwrap();
        assert_eq!(number(thread, 3), Some(42));
        text(thread, 2).unwrap()
    };
    assert_eq!(named(FIRST_TID), "reader \"1\" #71");
    assert_eq!(named(FIRST_TID + 1), "#72");
    assert_eq!(named(101), "carrier 1");
}

#[test]
fn scopes_and_waits_nest_and_arrows_lead_to_the_woken() {
    let mut names = HashMap::new();
    let mut found = Vec::new();
    let mut arrows = Vec::new();
    for packet in packets() {
        for interned in messages(&packet, 12)
            .iter()
            .flat_map(|data| messages(data, 2))
        {
            names.insert(number(&interned, 1).unwrap(), text(&interned, 2).unwrap());
        }
        for event in messages(&packet, 11) {
            arrows.extend([47, 48].map(|n| number(&event, n)).into_iter().flatten());
            if number(&event, 11) == Some(FIRST_TID) {
                let name = number(&event, 10).map(|id| names[&id].clone());
                found.push((
                    number(&packet, 8).unwrap(),
                    number(&event, 9).unwrap(),
                    name,
                ));
            }
        }
    }
    let expected = [
        (1100, 1, Some("scope")),
        (1200, 1, Some("waits: read")),
        (1500, 2, None),
        (1500, 3, Some("runs")),
        (1600, 2, None),
    ];
    let found: Vec<_> = found
        .iter()
        .map(|(t, k, n)| (*t, *k, n.as_deref()))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(arrows, [1, 1], "one arrow, with both ends");
}
