//! Heads that come in pieces, and their limits.

use super::*;

const HEAD: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nx: 1\r\n\r\n";

fn end(pieces: &[usize], bytes: &[u8], limit: usize) -> Result<Option<usize>, u16> {
    let mut search = Search::default();
    let mut found = Ok(None);
    for &length in pieces {
        found = search
            .end(&bytes[..length], limit)
            .map_err(|refusal| refusal.status.as_u16());
        if !matches!(found, Ok(None)) {
            break;
        }
    }
    found
}

#[test]
fn the_end_is_found_however_the_bytes_are_cut() {
    let more = [HEAD, b"GET"].concat();
    for first in 0..=HEAD.len() {
        for second in first..=HEAD.len() {
            let found = end(&[first, second, more.len()], &more, 1000);
            assert_eq!(found, Ok(Some(HEAD.len())), "{first} {second}");
            let before = end(&[first.min(second), second.min(HEAD.len() - 1)], HEAD, 1000);
            assert!(
                second == HEAD.len() || before == Ok(None),
                "{first} {second}"
            );
        }
    }
}

#[test]
fn lone_ends_of_lines_are_found_however_the_bytes_are_cut() {
    for bad in [
        &b"GET / HTTP/1.1\nx"[..],
        b"GET / HTTP/1.1\rx",
        b"GET / HTTP/1.1\r\nx\r\n\rx",
    ] {
        for first in 0..=bad.len() {
            assert_eq!(
                end(&[first, bad.len()], bad, 1000),
                Err(400),
                "{bad:?} {first}"
            );
        }
    }
}

#[test]
fn a_head_has_at_most_as_many_bytes_as_the_limit() {
    let length = HEAD.len();
    assert_eq!(end(&[length], HEAD, length), Ok(Some(length)));
    assert_eq!(end(&[length], HEAD, length - 1), Err(431));
    assert_eq!(end(&[10], HEAD, 10), Err(414));
}

#[test]
fn fields_share_the_bytes_of_the_head() {
    let limits = Limits {
        bytes: 1000,
        fields: 100,
    };
    let head = parse(Bytes::from_static(HEAD), &limits).unwrap();
    assert_eq!(head.request.fields.get().headers["x"], "1");
    assert!(head.keep_alive && !head.expects_continue);
    assert_eq!(head.framing, Framing::Length(0));
}
