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
    let limits = HeadLimits {
        bytes: 1000,
        fields: 100,
    };
    let head = parse(Bytes::from_static(HEAD), &limits).unwrap();
    assert_eq!(head.request.fields.get()["x"], "1");
    assert!(head.keep_alive && !head.expects_continue);
    assert_eq!(head.framing, Framing::Length(0));
}

#[test]
fn what_a_map_has_no_room_for_is_refused_when_it_comes() {
    let limits = HeadLimits {
        bytes: 1 << 20,
        fields: 1 << 16,
    };
    let parsed = |fields: String| {
        let head = format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n");
        let head = parse(head.into(), &limits).map_err(|(refusal, _)| refusal.status.as_u16())?;
        Ok(head.request.fields.get().len())
    };
    let many = |count| {
        parsed(
            (1..count)
                .map(|number| format!("x{number}: 1\r\n"))
                .collect(),
        )
    };
    for count in [17, 6_000, 7_000, 24_576] {
        assert_eq!(many(count), Ok(count));
    }
    assert_eq!(many(24_577), Err(431));
    let named = |length| parsed(format!("{}: 1\r\n", "x".repeat(length)));
    assert_eq!(named(65_535), Ok(2));
    assert_eq!(named(65_536), Err(400));
}

#[test]
fn a_head_says_how_its_connection_goes_on() {
    let limits = HeadLimits {
        bytes: 1000,
        fields: 100,
    };
    let parsed = |version: &str, fields: &str| {
        let head = format!("POST /a HTTP/1.{version}\r\nHost: a\r\n{fields}\r\n");
        let head = parse(head.into(), &limits).map_err(|(refusal, _)| refusal.status.as_u16())?;
        Ok((head.keep_alive, head.expects_continue, head.framing))
    };
    let none = Framing::Length(0);
    assert_eq!(parsed("1", ""), Ok((true, false, none)));
    assert_eq!(parsed("0", ""), Ok((false, false, none)));
    assert_eq!(
        parsed("1", "connection: x\r\nCONNECTION: y, Close\r\n"),
        Ok((false, false, none))
    );
    assert_eq!(
        parsed("0", "connection: Keep-Alive\r\n"),
        Ok((true, false, none))
    );
    assert_eq!(
        parsed("0", "connection: keep-alive, close\r\n"),
        Ok((false, false, none))
    );
    assert_eq!(
        parsed("1", "Expect: 100-Continue\r\n"),
        Ok((true, true, none))
    );
    assert_eq!(
        parsed("0", "expect: 100-continue\r\n"),
        Ok((false, false, none))
    );
    assert_eq!(parsed("1", "expect: x\r\n"), Err(417));
    let length = Framing::Length(5);
    assert_eq!(
        parsed("1", "Content-Length:5 \r\n"),
        Ok((true, false, length))
    );
    assert_eq!(
        parsed("1", "Content-Length: 5\r\nContent-length: 6\r\n"),
        Err(400)
    );
    let chunked = "Transfer-Encoding: Chunked\r\n";
    assert_eq!(parsed("1", chunked), Ok((true, false, Framing::Chunked)));
    assert_eq!(parsed("0", chunked), Err(400));
    assert_eq!(parsed("1", &chunked.repeat(2)), Err(400));
    assert_eq!(
        parsed("1", &["content-length: 5\r\n", chunked].concat()),
        Err(400)
    );
    assert_eq!(parsed("1", "hOST: a\r\n"), Err(400));
    assert_eq!(parsed("1", "x: \0\r\n"), Err(400));
}

#[test]
fn only_a_version_is_not_supported() {
    let limits = HeadLimits {
        bytes: 1000,
        fields: 100,
    };
    let status = |line: &str| {
        let head = format!("{line}\r\nHost: a\r\n\r\n");
        parse(head.into(), &limits).map_err(|(refusal, head)| {
            assert!(head.starts_with(line.as_bytes()));
            refusal.status.as_u16()
        })
    };
    for line in [
        "GET /a b HTTP/1.1",
        "GET / HTTP/1.1 x",
        "GET / FTP/1.1",
        "GET / HTTP/11",
        "GET /",
    ] {
        assert_eq!(status(line).err(), Some(400), "{line}");
    }
    for line in ["GET / HTTP/3.7", "GET / HTTP/2.0", "GET / HTTP/1.2"] {
        assert_eq!(status(line).err(), Some(505), "{line}");
    }
}
