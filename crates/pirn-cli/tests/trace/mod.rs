//! Reading traces as Perfetto does: the few kinds of fields that are checked.

use std::collections::BTreeMap;

/// Numbers of virtual threads begin here.
const FIRST_VIRTUAL: u64 = 1 << 24;

/// What was found in a trace.
#[derive(Default)]
pub struct Trace {
    pub pid: u64,
    pub program: String,
    /// The names of threads by their numbers.
    pub names: BTreeMap<u64, String>,
    /// In the order in which they are there.
    pub switches: Vec<Switch>,
    pub woken: Vec<u64>,
}

/// A `sched_switch`.
#[derive(Clone, Debug)]
pub struct Switch {
    pub cpu: u64,
    pub time: u64,
    pub prev: u64,
    pub next: u64,
}

impl Trace {
    /// Reads a trace.
    pub fn read(bytes: &[u8]) -> Trace {
        let mut trace = Trace::default();
        for packet in messages(&fields(bytes), 1) {
            for tree in messages(&packet, 2) {
                for process in messages(&tree, 1) {
                    trace.pid = number(&process, 1);
                    trace.program = text(&process, 3);
                }
                for thread in messages(&tree, 2) {
                    assert_eq!(number(&thread, 3), trace.pid);
                    let name = text(&thread, 2);
                    assert!(!name.is_empty());
                    trace.names.insert(number(&thread, 1), name);
                }
            }
            for bundle in messages(&packet, 1) {
                trace.bundle(&bundle);
            }
        }
        trace
    }

    fn bundle(&mut self, bundle: &[Field<'_>]) {
        let cpu = number(bundle, 1);
        for event in messages(bundle, 2) {
            let time = number(&event, 1);
            let switches = messages(&event, 4).into_iter().map(|switch| Switch {
                cpu,
                time,
                prev: number(&switch, 2),
                next: number(&switch, 6),
            });
            self.switches.extend(switches);
            let wakes = messages(&event, 20).into_iter();
            self.woken.extend(wakes.map(|waking| number(&waking, 2)));
        }
    }

    /// Returns how many virtual threads have names.
    pub fn virtual_threads(&self) -> usize {
        self.names.range(FIRST_VIRTUAL..).count()
    }
}

/// The number of a field, and its value.
type Field<'a> = (u64, Value<'a>);

#[derive(Clone, Copy)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Decodes a message by the rules of protocol buffers.
fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => Value::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let length = varint(&mut bytes) as usize;
                Value::Bytes(take(&mut bytes, length))
            }
            other => panic!("a field of type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (value, rest) = bytes.split_at(length);
    *bytes = rest;
    value
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let length = 1 + bytes.iter().take_while(|byte| **byte >= 0x80).count();
    let value = take(bytes, length).iter().rev();
    value.fold(0, |all, byte| all << 7 | u64::from(byte & 0x7f))
}

fn messages<'a>(message: &[Field<'a>], number: u64) -> Vec<Vec<Field<'a>>> {
    let found = message.iter().filter(|(n, _)| *n == number);
    let bytes = found.filter_map(|(_, value)| match value {
        Value::Bytes(bytes) => Some(*bytes),
        Value::Number(_) => None,
    });
    bytes.map(fields).collect()
}

fn number(message: &[Field<'_>], number: u64) -> u64 {
    let found = message.iter().find_map(|(n, value)| match value {
        Value::Number(value) if *n == number => Some(*value),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no number in field {number}"))
}

fn text(message: &[Field<'_>], number: u64) -> String {
    let found = message.iter().find_map(|(n, value)| match value {
        Value::Bytes(bytes) if *n == number => Some(String::from_utf8(bytes.to_vec()).unwrap()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no text in field {number}"))
}
