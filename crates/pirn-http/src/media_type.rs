//! Media types and other values with parameters: RFC 9110, section 5.6.6.

use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// A value, such as `text/plain; charset=utf-8`, or `form-data; name="a"`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MediaType<'t> {
    name: &'t str,
    parameters: Vec<(&'t str, String)>,
}

impl<'t> MediaType<'t> {
    /// Returns the media type of a body; `None`: the field is missing or malformed.
    pub(crate) fn of(headers: &HeaderMap) -> Option<MediaType<'_>> {
        MediaType::parse(headers.get(CONTENT_TYPE)?.to_str().ok()?)
    }

    /// Parses a value, strictly.
    pub(crate) fn parse(text: &'t str) -> Option<MediaType<'t>> {
        let (name, mut rest) = text.split_at(text.find(';').unwrap_or(text.len()));
        let mut parameters = Vec::new();
        while let Some(after) = rest.strip_prefix(';') {
            let after = after.trim_start_matches([' ', '\t']);
            if after.is_empty() || after.starts_with(';') {
                rest = after;
                continue;
            }
            let (key, after) = after.split_once('=')?;
            let (value, after) = match after.strip_prefix('"') {
                Some(inside) => quoted(inside)?,
                None => {
                    let (value, after) = after.split_at(after.find(';').unwrap_or(after.len()));
                    let value = value.trim_end_matches([' ', '\t']);
                    (is_token(value).then(|| value.to_owned())?, after)
                }
            };
            let is_first = parameters
                .iter()
                .all(|(known, _): &(&str, String)| !known.eq_ignore_ascii_case(key));
            if !is_token(key) || !is_first {
                return None;
            }
            parameters.push((key, value));
            rest = after.trim_start_matches([' ', '\t']);
        }
        let name = name.trim_matches([' ', '\t']);
        (rest.is_empty() && !name.is_empty()).then_some(MediaType { name, parameters })
    }

    /// Returns whether it is of this name, in whatever case.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Returns whether it is JSON, or a type whose syntax is that: RFC 6839, section 3.1.
    #[cfg(feature = "json")]
    pub(crate) fn is_json(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        let suffixed = name.strip_suffix("+json");
        name == "application/json" || suffixed.is_some_and(|before| before.contains('/'))
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let mut all = self.parameters.iter();
        let found = all.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }
}

fn is_token(text: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token)
}

/// Returns a quoted string's text and what follows it, from what follows its first quote.
///
/// Only a quote and a backslash are taken for escaped: some browsers send paths of Windows as they
/// are.
fn quoted(inside: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut rest = inside;
    loop {
        let at = rest.find(['"', '\\'])?;
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if rest.as_bytes()[at] == b'"' {
            return Some((text, after));
        }
        rest = match after.strip_prefix(['"', '\\']) {
            Some(further) => {
                text.push_str(&after[..1]);
                further
            }
            None => {
                text.push('\\');
                after
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_tokens_or_quoted() {
        let text = "Form-Data ; Name=\"a;\\\"b\\\\\";filename=x.txt ; ;c=\"C:\\dir\"";
        let value = MediaType::parse(text).unwrap();
        assert!(value.is("form-data"));
        assert_eq!(value.parameter("name"), Some("a;\"b\\"));
        assert_eq!(value.parameter("FileName"), Some("x.txt"));
        assert_eq!(value.parameter("c"), Some("C:\\dir"));
        assert_eq!(value.parameter("d"), None);
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_none() {
        for text in [
            "",
            "; a=b",
            "x; a",
            "x; a=",
            "x; a=\"b",
            "x; a=\"b\"c",
            "x; a=b; A=c",
            "x; a =b",
            "x; a=b c",
        ] {
            assert_eq!(MediaType::parse(text), None, "{text}");
        }
    }
}
