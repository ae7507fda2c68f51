//! What another server says about the length of its answer: what can be read in two ways is not
//! passed on, as the client, or another proxy, might read it in the other one (RFC 9112, section
//! 6.3).

use pirn_http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use pirn_http::{HeaderMap, HeaderValue, Status};

/// Returns the length that an answer announces; `None`: it has none, or one in chunks.
///
/// # Errors
/// The reason why the proxy does not pass the answer on.
pub(super) fn length(status: Status, headers: &HeaderMap) -> Result<Option<u64>, &'static str> {
    if status.is_informational() {
        return Err("it changes the protocol, and no client has asked for that");
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).into_iter();
    let coding = codings.next().map(HeaderValue::as_bytes);
    let is_chunked = coding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
    if codings.next().is_some() || coding.is_some() && !is_chunked {
        return Err("its Transfer-Encoding is not \"chunked\"");
    }
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let known = length.replace(decimal(value).ok_or("its Content-Length is not a number")?);
        if known.is_some() && known != length {
            return Err("it has two lengths");
        }
    }
    match (length, coding) {
        (Some(_), Some(_)) => Err("it has a Content-Length and a Transfer-Encoding"),
        (length, _) => Ok(length),
    }
}

/// Returns a number of digits only: unlike `parse`, without a sign.
fn decimal(value: &HeaderValue) -> Option<u64> {
    let text = value.to_str().ok()?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use pirn_http::HeaderName;

    #[test]
    fn a_length_can_be_read_in_one_way_only() {
        let length = |fields: &[(HeaderName, &'static str)]| {
            let fields = fields.iter().cloned();
            let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
            length(Status::OK, &fields.collect())
        };
        assert_eq!(length(&[]), Ok(None));
        assert_eq!(length(&[(CONTENT_LENGTH, "12")]), Ok(Some(12)));
        assert_eq!(length(&[(TRANSFER_ENCODING, "Chunked")]), Ok(None));
        for wrong in ["", "+1", "-1", " 1 1", "1,1", "0x1", "99999999999999999999"] {
            assert!(length(&[(CONTENT_LENGTH, wrong)]).is_err(), "{wrong}");
        }
        for wrong in ["", "gzip", "chunked, chunked", "chunked,", "identity"] {
            assert!(length(&[(TRANSFER_ENCODING, wrong)]).is_err(), "{wrong}");
        }
        let both = [(CONTENT_LENGTH, "1"), (TRANSFER_ENCODING, "chunked")];
        assert!(length(&both).is_err());
    }

    #[test]
    fn two_lengths_must_be_the_same() {
        let lengths = |second: &'static str| {
            let mut headers = HeaderMap::new();
            for value in ["1", second] {
                headers.append(CONTENT_LENGTH, HeaderValue::from_static(value));
            }
            length(Status::OK, &headers)
        };
        assert_eq!(lengths("1"), Ok(Some(1)));
        assert!(lengths("2").is_err());
    }
}
