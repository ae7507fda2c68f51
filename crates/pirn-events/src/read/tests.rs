use super::*;

fn section(tag: u32, content: &[u8]) -> Vec<u8> {
    let length = content.len() as u32;
    [&tag.to_le_bytes(), &length.to_le_bytes(), content].concat()
}

fn numbers(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn recording() -> Vec<u8> {
    let mut bytes = [MAGIC.as_slice(), &VERSION.to_le_bytes()].concat();
    let process = [
        [4, 2, 1, 3].map(u32::to_le_bytes).concat(),
        b"a/bwhy".to_vec(),
    ]
    .concat();
    bytes.extend(section(1, &process));
    bytes.extend(section(2, &numbers(&[1000, 50, 7])));
    let carrier = [
        [1u32, 77].map(u32::to_le_bytes).concat(),
        numbers(&[10, 3, 1, 2, 3, 4]),
    ]
    .concat();
    bytes.extend(section(3, &carrier));
    bytes.extend(section(4, &numbers(&[2, 1, 2, 3, 4, 5])));
    bytes.extend(section(99, b"of a later version"));
    bytes.extend(section(8, &[numbers(&[5]), b"name\xff".to_vec()].concat()));
    bytes.extend(section(7, &numbers(&[5])));
    bytes
}

#[test]
fn a_recording_is_read() {
    let recording = Recording::read(&mut recording().as_slice()).unwrap();
    assert_eq!((recording.pid, recording.counter), (4, true));
    assert_eq!(
        (recording.program.as_slice(), recording.reason.as_str()),
        (&b"a/b"[..], "why")
    );
    let carrier = &recording.carriers[&1];
    let segment = Segment {
        first: 10,
        lost: 3,
        slots: vec![[1, 2], [3, 4]],
    };
    assert_eq!((carrier.tid, &carrier.segments), (77, &vec![segment]));
    assert_eq!(recording.outside, [[1, 2, 3, 4, 5]]);
    assert_eq!(recording.names[&5], "name\u{fffd}");
    assert_eq!(recording.lost, 5);
    assert!(recording.complete);
}

#[test]
fn a_recording_that_breaks_off_is_read_as_far_as_it_goes() {
    let whole = recording();
    for end in 12..whole.len() {
        let part = Recording::read(&mut &whole[..end]).unwrap();
        assert!(!part.complete, "{end}");
    }
}

#[test]
fn anything_else_is_an_error() {
    let read = |bytes: &[u8]| Recording::read(&mut &bytes[..]).map(drop);
    assert!(matches!(read(b""), Err(ReadError::NotARecording)));
    assert!(matches!(
        read(b"PIRNDUMP\x01\0\0\0"),
        Err(ReadError::NotARecording)
    ));
    assert!(matches!(
        read(b"PIRNEVTS\x02\0\0\0"),
        Err(ReadError::Version(2))
    ));
    let head = [MAGIC.as_slice(), &VERSION.to_le_bytes()].concat();
    for (tag, content) in [(1, &b"short"[..]), (2, b"1234"), (3, b""), (9, b"12345")] {
        let bytes = [head.clone(), section(tag, content)].concat();
        assert!(matches!(read(&bytes), Err(ReadError::Malformed(t)) if t == tag));
    }
    let huge = [
        head,
        1u32.to_le_bytes().into(),
        u32::MAX.to_le_bytes().into(),
    ]
    .concat();
    assert!(matches!(read(&huge), Err(ReadError::Malformed(1))));
}

/// Any change of one byte gives a recording or an error, and a trace of it.
#[test]
fn no_byte_makes_it_panic() {
    let whole = recording();
    for place in 12..whole.len() {
        for value in [0, 1, 5, 17, 0x7f, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[place] = value;
            if let Ok(recording) = Recording::read(&mut changed.as_slice()) {
                let timeline = crate::Timeline::new(&recording);
                crate::perfetto::write(&timeline, &mut Vec::new()).unwrap();
            }
        }
    }
}
