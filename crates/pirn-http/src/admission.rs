//! What a request must be to be served, in HTTP/1.1 and HTTP/2 alike: one table for both.
//!
//! | input | answer |
//! |---|---|
//! | no `Host`, two, a malformed one, or another than the target's authority | 400 |
//! | a target of a form that the method does not take, or with `#` or `\\` | 400 |
//! | an `Expect` other than `100-continue` | 417 |
//!
//! What belongs to one version is in `h1::head`, `h1::framing` and `h2::head`.

use crate::refusal::Refusal;
use http::uri::Authority;
use http::{Method, StatusCode, Uri};

/// Why a request with more header fields than allowed is refused, in either version.
pub(crate) const TOO_MANY: &str = "more header fields than the server's limit";

/// Checks that a request names one host: RFC 9110, section 7.2. `first` is the value of the first
/// of its `hosts` fields `Host`, `target` the authority of its target. Returns the authority that
/// `first` names; `None`: the field is missing or empty, or has a plain host and there is no
/// `target` to compare with.
///
/// # Errors
/// If it names no host, or two.
pub(crate) fn check_host(
    first: Option<&[u8]>,
    hosts: usize,
    target: Option<&Authority>,
) -> Result<Option<Authority>, Refusal> {
    if hosts > 1 {
        return Err(Refusal::bad("more than one Host"));
    }
    let host = match first {
        None => return Ok(None),
        // The target has no authority.
        Some(b"") => None,
        Some(bytes) if target.is_none() && is_plain_host(bytes) => return Ok(None),
        Some(bytes) => Some(
            Authority::try_from(bytes)
                .ok()
                .filter(is_host_and_port)
                .ok_or(Refusal::bad("invalid Host header"))?,
        ),
    };
    match target {
        Some(target) if Some(target) != host.as_ref() => {
            Err(Refusal::bad("Host and target disagree"))
        }
        _ => Ok(host),
    }
}

/// Returns whether `text` is a target in the form that the method takes (RFC 9112, section 3.2).
/// `uri` is `text`, parsed.
pub(crate) fn is_target(method: &Method, uri: &Uri, text: &str) -> bool {
    let fits = match (uri.scheme_str(), uri.authority()) {
        _ if text.starts_with('/') => true,
        (None, Some(authority)) => *method == Method::CONNECT && is_host_and_port(authority),
        (None, None) => text == "*" && *method == Method::OPTIONS,
        (Some("http" | "https"), Some(authority)) => is_host_and_port(authority),
        _ => false,
    };
    // A target that another program would cut or read differently.
    let is_cut = memchr::memchr2(b'#', b'\\', text.as_bytes()).is_some();
    fits && !is_cut && !(*method == Method::CONNECT && text.contains('/'))
}

/// Returns whether the value of `Expect` says that the client waits for `100 Continue`.
///
/// # Errors
/// If it is another expectation.
pub(crate) fn expects_continue(value: Option<&[u8]>) -> Result<bool, Refusal> {
    let unknown = || Refusal::new(StatusCode::EXPECTATION_FAILED, "an unknown expectation");
    match value {
        Some(value) if value.eq_ignore_ascii_case(b"100-continue") => Ok(true),
        Some(_) => Err(unknown()),
        None => Ok(false),
    }
}

/// Returns whether an authority is a host alone, or a host and a colon, with a port's number or
/// nothing behind it: RFC 9110, section 4.2. `http` takes any bytes for a port.
pub(crate) fn is_host_and_port(authority: &Authority) -> bool {
    let text = authority.as_str();
    let port = text[authority.host().len()..].strip_prefix(':');
    !text.contains('@') && port.is_none_or(|port| port.is_empty() || is_port(port.as_bytes()))
}

fn is_port(text: &[u8]) -> bool {
    decimal(text).is_some_and(|port| port <= 65535)
}

/// Returns whether this is a name or an address of version 4, with a port or without: what most
/// clients send. The parser takes 730 instructions for that, a tenth of a small request.
fn is_plain_host(bytes: &[u8]) -> bool {
    const PLAIN: [bool; 256] = {
        let mut plain = [false; 256];
        let mut byte = 0_u8;
        while byte < 128 {
            plain[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
            byte += 1;
        }
        plain
    };
    let is_plain = |byte: &&u8| PLAIN[usize::from(**byte)];
    let name = bytes.iter().take_while(is_plain).count();
    let port_is_fine = match &bytes[name..] {
        [] => true,
        [b':', port @ ..] => port.len() <= 5 && is_port(port),
        _ => false,
    };
    name > 0 && port_is_fine
}

/// Parses digits only, unlike `str::parse`, which takes a sign.
pub(crate) fn decimal(value: &[u8]) -> Option<u64> {
    let add = |number: u64, digit: &u8| match digit {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    };
    let number = value.iter().try_fold(0, add)?;
    (!value.is_empty()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short way takes nothing that the parser would not take.
    #[test]
    fn plain_hosts_are_hosts() {
        let plain = [
            "a",
            "a.b-c:1",
            "127.0.0.1:65535",
            "a:00080",
            "0:0",
            "-",
            ".",
        ];
        for host in plain {
            assert!(is_plain_host(host.as_bytes()), "{host}");
            let authority = Authority::try_from(host).unwrap();
            assert!(is_host_and_port(&authority), "{host}");
        }
        let others = [
            "", ":80", "a:", "a:65536", "a:000080", "a:8x", "a:+80", "a:80:80",
        ];
        for other in others
            .into_iter()
            .chain(["a@b", "[::1]:80", "a_b", "\u{e4}"])
        {
            assert!(!is_plain_host(other.as_bytes()), "{other}");
        }
    }
}
