//! What is written is read; what is damaged is an error.

use super::*;
use crate::samples::everything;

/// Numbers that look random, the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

fn bytes_of(dump: &Dump) -> Vec<u8> {
    let mut bytes = Vec::new();
    dump.write_to(&mut bytes).unwrap();
    bytes
}

fn error_of(bytes: &[u8]) -> String {
    Dump::read_from(bytes).unwrap_err().to_string()
}

#[test]
fn everything_survives() {
    let dump = everything();
    assert_eq!(Dump::read_from(&bytes_of(&dump)[..]).unwrap(), dump);
}

#[test]
fn many_records_make_many_blocks() {
    let mut dump = everything();
    dump.threads = (0..10_000)
        .map(|id| crate::Thread {
            id,
            ..dump.threads[0].clone()
        })
        .collect();
    let bytes = bytes_of(&dump);
    assert!(bytes.len() > 5 * BLOCK);
    assert_eq!(Dump::read_from(&bytes[..]).unwrap(), dump);
}

#[test]
fn records_of_different_kinds_may_be_mixed() {
    let mut encoder = Encoder::new(Vec::new()).unwrap();
    for number in 0..3 {
        encoder
            .memory(&crate::Memory {
                name: "x".into(),
                bytes: number,
            })
            .unwrap();
        encoder
            .thread(&crate::Thread {
                id: number,
                ..Default::default()
            })
            .unwrap();
    }
    let dump = Dump::read_from(&encoder.finish().unwrap()[..]).unwrap();
    assert_eq!(
        dump.threads
            .iter()
            .map(|thread| thread.id)
            .collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!(dump.memory.len(), 3);
}

#[test]
fn a_dump_that_stops_anywhere_is_incomplete() {
    let bytes = bytes_of(&everything());
    for length in 0..bytes.len() {
        let error = error_of(&bytes[..length]);
        assert!(
            error.contains("too short") || error.contains("incomplete"),
            "{length}: {error}"
        );
    }
}

#[test]
fn what_is_added_later_is_skipped() {
    let mut bytes = b"PIRNDUMP\x01\0\0\0".to_vec();
    // A block of an unknown kind, and a record with a field more.
    bytes.extend([99, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3]);
    let mut record = Vec::new();
    fields::Fields(&mut record).bytes(b"stacks");
    record.extend(7_u64.to_le_bytes());
    record.extend(b"more");
    bytes.extend((Tag::Memory as u32).to_le_bytes());
    bytes.extend((record.len() as u32 + 4).to_le_bytes());
    bytes.extend((record.len() as u32).to_le_bytes());
    bytes.extend(&record);
    bytes.extend([0; 8]);
    let dump = Dump::read_from(&bytes[..]).unwrap();
    assert_eq!(
        dump.memory,
        [crate::Memory {
            name: "stacks".into(),
            bytes: 7
        }]
    );
}

#[test]
fn a_thread_of_a_version_without_what_it_works_for_is_read() {
    let thread = crate::Thread {
        id: 7,
        stack_bytes: Some(8),
        ..Default::default()
    };
    let mut encoder = Encoder::new(Vec::new()).unwrap();
    encoder.thread(&thread).unwrap();
    let mut bytes = encoder.finish().unwrap();
    // The last field, an empty list, is before the end block; the lengths of block and record come
    // after the block's tag.
    bytes.drain(bytes.len() - 12..bytes.len() - 8);
    bytes[16] -= 4;
    bytes[20] -= 4;
    assert_eq!(Dump::read_from(&bytes[..]).unwrap().threads, [thread]);
}

#[test]
fn errors_say_what_and_where() {
    assert_eq!(error_of(b"PIRN"), "not a dump: it is too short");
    let later = error_of(b"PIRNDUMP\x09\0\0\0");
    assert!(
        later.starts_with("the dump has version 9, and only 1 can be read"),
        "{later}"
    );
    let long = error_of(b"PIRNDUMP\x01\0\0\0\x09\0\0\0\xff\xff\xff\xff");
    assert!(
        long.contains("4294967295 bytes") && long.contains("`threads` at byte 12"),
        "{long}"
    );
    let empty = error_of(b"PIRNDUMP\x01\0\0\0\x09\0\0\0\x04\0\0\0\0\0\0\0");
    assert_eq!(
        empty,
        "a record is too short (in the block `threads` at byte 12)"
    );
    let mut dump = everything();
    dump.threads[0].stack = Some(77);
    let lost = error_of(&bytes_of(&dump));
    assert!(
        lost.starts_with("thread 0 refers to stack 77, and there are "),
        "{lost}"
    );
    dump = everything();
    dump.groups[0].examples = vec![1_000];
    assert!(error_of(&bytes_of(&dump)).contains("refers to thread 1000"));
}

#[test]
fn a_length_that_lies_costs_nothing() {
    // A stack of four thousand million frames.
    let error = error_of(b"PIRNDUMP\x01\0\0\0\x06\0\0\0\x08\0\0\0\x04\0\0\0\xff\xff\xff\xff");
    assert_eq!(
        error,
        "a record is too short (in the block `stacks` at byte 12)"
    );
}

#[test]
fn names_and_lists_that_are_too_long_are_cut() {
    let mut dump = everything();
    dump.threads[0].name = Some(vec![b'x'; 10 * LONGEST_TEXT]);
    dump.findings[0].threads = vec![1; LONGEST_LIST + 1];
    let read = Dump::read_from(&bytes_of(&dump)[..]).unwrap();
    assert_eq!(read.threads[0].name.as_ref().unwrap().len(), LONGEST_TEXT);
    assert_eq!(read.findings[0].threads.len(), LONGEST_LIST);
}

/// Damaged dumps are errors or other dumps; if there is one, all formats can show it.
#[test]
fn damaged_dumps_are_harmless() {
    let whole = bytes_of(&everything());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let rounds = 10_000;
    let mut read = 0;
    for _ in 0..rounds {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(4) {
            damage(&mut bytes, &mut random);
        }
        if let Ok(dump) = Dump::read_from(&bytes[..]) {
            read += 1;
            // Showing takes longer than reading.
            if read % 8 == 0 {
                crate::samples::show_everywhere(&dump);
            }
        }
    }
    assert!(
        read > rounds / 20,
        "only {read} of {rounds} could be read: this tests little"
    );
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
        2 => {
            let end = bytes.len().min(at + random.below(16));
            bytes.drain(at..end);
        }
        3 => {
            let end = bytes.len().min(at + random.below(64));
            let copy = bytes[at..end].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, copy);
        }
        4 => {
            let end = bytes.len().min(at + 8);
            bytes[at..end].fill(0xff);
        }
        _ => bytes.truncate(at.max(12)),
    }
    if bytes.is_empty() {
        bytes.push(0);
    }
}
