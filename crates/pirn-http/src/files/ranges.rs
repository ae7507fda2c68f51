//! Parts of a file: RFC 9110, section 14.

use std::ops::Range;

/// More ranges than this are not served: the file is sent whole.
const MOST: usize = 16;

/// What a `Range` field asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// All bytes: the request has no `Range`, or one that the server ignores.
    Whole,
    /// These parts, of which there is at least one; none is empty.
    Parts(Vec<Range<u64>>),
    /// Nothing that the file has.
    Nothing,
}

/// Parses the value of `Range` for a file of `length` bytes.
///
/// A server may ignore the field (section 14.2). It is ignored if it is malformed, has many ranges,
/// or asks for more bytes than there are: for that, the same bytes have to be sent repeatedly.
pub(crate) fn wanted(value: Option<&str>, length: u64) -> Wanted {
    let Some((unit, set)) = value.and_then(|value| value.split_once('=')) else {
        return Wanted::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Wanted::Whole;
    }
    let mut parts = Vec::new();
    let mut count = 0;
    for spec in set.split(',').map(|spec| spec.trim_matches([' ', '\t'])) {
        if spec.is_empty() {
            continue; // Empty elements of a list do not count (section 5.6.1.2).
        }
        count += 1;
        match part(spec, length) {
            Some(range) if range.is_empty() => {}
            Some(range) => parts.push(range),
            None => return Wanted::Whole,
        }
    }
    if length == 0 && count > 0 && set.split(',').any(|spec| is_suffix(spec.trim())) {
        return Wanted::Whole; // The last bytes of nothing are all of it (section 14.1.2).
    }
    let total: u128 = parts
        .iter()
        .map(|part| u128::from(part.end - part.start))
        .sum();
    match parts.len() {
        _ if count == 0 || count > MOST => Wanted::Whole,
        0 => Wanted::Nothing,
        1 => Wanted::Parts(parts),
        _ if total > u128::from(length) => Wanted::Whole,
        _ => Wanted::Parts(parts),
    }
}

/// Returns one range, empty if the file does not reach there. `None`: it is malformed.
fn part(spec: &str, length: u64) -> Option<Range<u64>> {
    let (first, last) = spec.split_once('-')?;
    if first.is_empty() {
        let count = number(last)?;
        return Some(length.saturating_sub(count)..length);
    }
    let first = number(first)?;
    let end = match last {
        "" => length,
        last => {
            let last = number(last)?;
            if last < first {
                return None;
            }
            length.min(last.saturating_add(1))
        }
    };
    Some(first.min(end)..end)
}

/// Returns whether a range asks for the last bytes of the file, and for at least one.
fn is_suffix(spec: &str) -> bool {
    spec.strip_prefix('-')
        .and_then(number)
        .is_some_and(|count| count > 0)
}

/// Parses digits. A number that is too large is the largest: it is beyond any file.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_file() {
        let parts = |value: &str| match wanted(Some(value), 10) {
            Wanted::Parts(parts) => Vec::from_iter(parts.iter().map(|part| (part.start, part.end))),
            other => panic!("{value}: {other:?}"),
        };
        assert_eq!(parts("bytes=0-0"), [(0, 1)]);
        assert_eq!(parts("bytes=2-"), [(2, 10)]);
        assert_eq!(parts("bytes=-3"), [(7, 10)]);
        assert_eq!(parts("bytes=-30"), [(0, 10)]);
        assert_eq!(parts("Bytes= 5-99999999999999999999999"), [(5, 10)]);
        assert_eq!(parts("bytes=0-1, 4-5,,-1"), [(0, 2), (4, 6), (9, 10)]);
        assert_eq!(parts("bytes=0-1,20-30"), [(0, 2)]);
    }

    #[test]
    fn what_is_malformed_or_excessive_is_ignored() {
        for value in [
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=3-2",
            "bytes=+1-2",
            "bytes=1-2-3",
            "lines=1-2",
            "bytes=0-9,0-9",
            "bytes=0-,-5",
            "bytes=1-2;3-4",
            "bytes=1 -2",
        ] {
            assert_eq!(wanted(Some(value), 10), Wanted::Whole, "{value}");
        }
        let many = format!("bytes={}", vec!["0-0"; MOST + 1].join(","));
        assert_eq!(wanted(Some(&many), 1000), Wanted::Whole);
        assert_eq!(wanted(None, 10), Wanted::Whole);
    }

    #[test]
    fn what_is_beyond_the_file_cannot_be_had() {
        for value in [
            "bytes=10-",
            "bytes=10-20",
            "bytes=-0",
            "bytes=99999999999999999999-",
        ] {
            assert_eq!(wanted(Some(value), 10), Wanted::Nothing, "{value}");
        }
        assert_eq!(wanted(Some("bytes=-5"), 0), Wanted::Whole);
        assert_eq!(wanted(Some("bytes=-0"), 0), Wanted::Nothing);
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Nothing);
    }
}
