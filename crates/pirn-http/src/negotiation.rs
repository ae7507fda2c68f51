//! Header fields that are lists, and which coding of a body a client prefers: RFC 9110, section
//! 12.5.3.

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue, VARY};

/// Returns the first of `codings`, in the order of the server's preference, that the client accepts
/// with the highest quality; `fields` are the values of all its `Accept-Encoding`. `None`: it
/// prefers the body as it is.
pub(crate) fn preferred<'f, 'c>(
    fields: impl Iterator<Item = &'f [u8]>,
    codings: &[&'c str],
) -> Option<&'c str> {
    let mut accepted = Vec::new();
    for value in fields {
        let value = str::from_utf8(value).unwrap_or_default();
        accepted.extend(value.split(',').filter_map(entry));
    }
    let quality_of = |coding: &str| {
        let named = |name: &str| {
            let mut all = accepted.iter();
            all.find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|&(_, quality)| quality)
        };
        named(coding).or_else(|| named("*")).unwrap_or(0)
    };
    let identity = accepted
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("identity"));
    let mut best = (None, identity.map_or(0, |&(_, quality)| quality));
    for &coding in codings {
        let quality = quality_of(coding);
        // As good as no coding: the coding is shorter. As good as another one: that came first.
        if quality > best.1 || (quality == best.1 && quality > 0 && best.0.is_none()) {
            best = (Some(coding), quality);
        }
    }
    best.0
}

/// Returns a coding and its quality in thousandths; `None`: the entry is malformed.
fn entry(text: &str) -> Option<(&str, u16)> {
    let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
    let name = name.trim();
    let quality = match parameters.trim() {
        "" => 1000,
        parameter => {
            let (key, value) = parameter.split_once('=')?;
            if !key.trim().eq_ignore_ascii_case("q") {
                return None;
            }
            thousandths(value.trim())?
        }
    };
    (!name.is_empty()).then_some((name, quality))
}

/// Parses `0`, `0.5`, `1.000`: a digit and up to three decimals.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = decimals.len() <= 3 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let decimals = format!("{decimals:0<3}")
        .parse::<u16>()
        .ok()
        .filter(|_| is_number)?;
    match (whole, decimals) {
        ("0", decimals) => Some(decimals),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

/// Returns the elements of a field that is a list, however many fields there are: RFC 9110,
/// section 5.6.1.
pub(crate) fn elements<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h [u8]> + use<'h> {
    let fields = headers.get_all(name).iter();
    fields.flat_map(|value| elements_of(value.as_bytes()))
}

/// Returns the elements of one field's value.
pub(crate) fn elements_of(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// Notes that the response depends on a field of the request, so that caches keep it apart.
pub(crate) fn vary(headers: &mut HeaderMap, name: &HeaderName) {
    let is_known =
        |known: &[u8]| known == b"*" || known.eq_ignore_ascii_case(name.as_str().as_bytes());
    if !elements(headers, &VARY).any(is_known) {
        headers.append(VARY, HeaderValue::from(name.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT_ENCODING;

    fn chosen(field: &'static str) -> Option<&'static str> {
        preferred([field.as_bytes()].into_iter(), &["br", "gzip"])
    }

    #[test]
    fn the_highest_quality_wins_and_then_the_servers_order() {
        assert_eq!(preferred(std::iter::empty(), &["br", "gzip"]), None);
        for (field, coding) in [
            ("", None),
            ("gzip", Some("gzip")),
            ("gzip, br", Some("br")),
            ("GZIP;Q=0.8, br;q=0.5", Some("gzip")),
            ("*", Some("br")),
            ("*;q=0.5, br;q=0", Some("gzip")),
            ("gzip;q=0", None),
            ("gzip;q=0.000, identity", None),
            ("identity, gzip;q=0.9", None),
            ("identity;q=0.5, gzip;q=0.5", Some("gzip")),
            ("zstd, compress", None),
            ("gzip;q=2", None),
            ("gzip;q=0.5000", None),
            ("gzip;q=+1", None),
            ("gzip;x=1", None),
        ] {
            assert_eq!(chosen(field), coding, "{field}");
        }
    }

    #[test]
    fn vary_names_a_field_once() {
        let mut headers = HeaderMap::new();
        vary(&mut headers, &ACCEPT_ENCODING);
        vary(&mut headers, &ACCEPT_ENCODING);
        assert_eq!(headers.get_all(VARY).iter().count(), 1);
        headers.insert(VARY, HeaderValue::from_static("Origin, Accept-Encoding"));
        vary(&mut headers, &ACCEPT_ENCODING);
        assert_eq!(headers.get_all(VARY).iter().count(), 1);
    }
}
