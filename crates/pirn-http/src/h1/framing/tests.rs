//! The table of the module's documentation.

use super::*;

fn framing(headers: &[(&str, &str)]) -> Result<Framing, u16> {
    framing_in(Version::HTTP_11, headers)
}

fn framing_in(version: Version, headers: &[(&str, &str)]) -> Result<Framing, u16> {
    let values = |wanted| {
        let fields = headers.iter().filter(move |(name, _)| *name == wanted);
        fields.map(|(_, value)| value.as_bytes())
    };
    Framing::of(values(LENGTH), values(CODING), version).map_err(|refusal| refusal.status.as_u16())
}

const LENGTH: &str = "content-length";
const CODING: &str = "transfer-encoding";

#[test]
fn without_headers_there_is_no_body() {
    assert_eq!(framing(&[]), Ok(Framing::Length(0)));
}

#[test]
fn lengths_are_digits() {
    assert_eq!(framing(&[(LENGTH, "5")]), Ok(Framing::Length(5)));
    assert_eq!(
        framing(&[(LENGTH, "18446744073709551615")]),
        Ok(Framing::Length(u64::MAX))
    );
    for bad in [
        "+5",
        "-5",
        "5 5",
        "0x5",
        "",
        "18446744073709551616",
        "5,5",
        "5_0",
        "5.0",
        "٥",
    ] {
        assert_eq!(framing(&[(LENGTH, bad)]), Err(400), "{bad:?}");
    }
}

#[test]
fn equal_lengths_are_one_and_others_none() {
    assert_eq!(
        framing(&[(LENGTH, "5"), (LENGTH, "5")]),
        Ok(Framing::Length(5))
    );
    assert_eq!(framing(&[(LENGTH, "5"), (LENGTH, "6")]), Err(400));
}

#[test]
fn only_chunked_is_a_coding() {
    assert_eq!(framing(&[(CODING, "chunked")]), Ok(Framing::Chunked));
    assert_eq!(framing(&[(CODING, "ChUnKeD")]), Ok(Framing::Chunked));
    for bad in [
        "chunked,",
        "chunked, chunked",
        "xchunked",
        "chunked;a",
        "",
        "\tchunked",
        "gzip, x",
    ] {
        assert_eq!(framing(&[(CODING, bad)]), Err(400), "{bad:?}");
    }
    for other in ["gzip", "gzip, chunked", "identity", "deflate,chunked"] {
        assert_eq!(framing(&[(CODING, other)]), Err(501), "{other:?}");
    }
    assert_eq!(
        framing(&[(CODING, "chunked"), (CODING, "chunked")]),
        Err(400)
    );
    assert_eq!(
        framing_in(Version::HTTP_10, &[(CODING, "chunked")]),
        Err(400)
    );
}

#[test]
fn a_length_and_a_coding_contradict_each_other() {
    assert_eq!(framing(&[(LENGTH, "5"), (CODING, "chunked")]), Err(400));
}
